-- People, what they write, and whom they follow.
-- An ALTER TABLE is done or not done, never half; when it is done already, the runner goes on.

ALTER TABLE user
  ADD COLUMN avatar VARCHAR(512) NULL COMMENT 'a URL',
  ADD COLUMN ver    BIGINT NOT NULL DEFAULT 1 COMMENT 'changes of the profile so far';

-- Apart from the profile: what shows profiles never reads this.
CREATE TABLE IF NOT EXISTS user_phone (
  phone      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'E.164',
  user_id    BIGINT      NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (phone),
  UNIQUE KEY by_user (user_id)
);

CREATE TABLE IF NOT EXISTS shop (
  id         BIGINT       NOT NULL,
  name       VARCHAR(200) NOT NULL,
  created_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id)
);

ALTER TABLE content
  ADD COLUMN parent_id BIGINT       NULL COMMENT 'the post of a comment, the shop of a review',
  ADD COLUMN kind      VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of a post: note, blog',
  ADD COLUMN title     VARCHAR(200) NULL,
  ADD COLUMN body      TEXT         NULL,
  ADD COLUMN images    TEXT         NULL COMMENT 'JSON: at most 9 URLs',
  ADD COLUMN score     TINYINT      NULL COMMENT 'of a review: 1 to 5',
  ADD KEY by_author (content_type, author_id, deleted_at, created_at, content_id),
  ADD KEY by_parent (content_type, parent_id, deleted_at, created_at, content_id);

-- A creation that is sent twice under one Idempotency-Key is one: the primary key decides.
CREATE TABLE IF NOT EXISTS creation (
  user_id        BIGINT      NOT NULL,
  key_sha256     BINARY(32)  NOT NULL,
  request_sha256 BINARY(32)  NOT NULL COMMENT 'what was asked for under that key',
  content_type   VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  content_id     BIGINT      NOT NULL,
  created_at     DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (user_id, key_sha256),
  KEY by_age (created_at)
);

-- A user is a target too. Their row here gives the reactions to them a version and a lock of their
-- own: user_counter moves with everything they do.
ALTER TABLE content_counter
  ADD COLUMN follow_total BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN follow_ver   BIGINT NOT NULL DEFAULT 0;
