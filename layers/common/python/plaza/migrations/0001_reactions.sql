-- Who reacted to what, the log of it, and the counters it moves.
-- MySQL 8 and MariaDB 10.11 both take every statement here. Times are UTC.

CREATE TABLE IF NOT EXISTS user (
  id         BIGINT       NOT NULL,
  nickname   VARCHAR(64)  NOT NULL,
  role       VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'user',
  created_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id)
);

CREATE TABLE IF NOT EXISTS content (
  content_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'post, comment, review',
  content_id   BIGINT      NOT NULL,
  author_id    BIGINT      NOT NULL,
  created_at   DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  deleted_at   DATETIME(6) NULL COMMENT 'set: gone, but what it received stays counted',
  PRIMARY KEY (content_type, content_id)
);

CREATE TABLE IF NOT EXISTS session (
  token_sha256 BINARY(32)  NOT NULL COMMENT 'the token itself is stored nowhere',
  user_id      BIGINT      NOT NULL,
  created_at   DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  expires_at   DATETIME(6) NOT NULL,
  PRIMARY KEY (token_sha256),
  KEY by_user (user_id),
  KEY by_expiry (expires_at)
);

-- The record: the present state of each (target, kind, actor). A row whose state
-- went back to 0 stays: its ver is what makes late facts late.
CREATE TABLE IF NOT EXISTS reaction (
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT      NOT NULL,
  kind        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  actor_id    BIGINT      NOT NULL,
  state       TINYINT     NOT NULL,
  ver         BIGINT      NOT NULL COMMENT 'microseconds since 1970: version, time and order in one',
  created_at  DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  updated_at  DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (target_type, target_id, kind, actor_id),
  KEY by_actor (actor_id, kind, state, ver),
  KEY by_target (target_type, target_id, kind, state, ver)
);

-- Every event that was ever saved, once, with what it changed. Never updated.
CREATE TABLE IF NOT EXISTS reaction_log (
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT      NOT NULL,
  kind        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  actor_id    BIGINT      NOT NULL,
  ver         BIGINT      NOT NULL,
  state       TINYINT     NOT NULL,
  change_by   TINYINT     NOT NULL COMMENT 'what the event changed in the count: 1, -1, 0',
  commit_n    BIGINT      NOT NULL COMMENT 'version of the counter after its commit, with the epoch',
  create_date DATE        NOT NULL COMMENT 'the UTC day of ver',
  PRIMARY KEY (target_type, target_id, kind, actor_id, ver, create_date)
) PARTITION BY RANGE COLUMNS (create_date) (
  PARTITION p_rest VALUES LESS THAN (MAXVALUE)
);

CREATE TABLE IF NOT EXISTS content_counter (
  target_type   VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id     BIGINT NOT NULL,
  like_total    BIGINT NOT NULL DEFAULT 0,
  like_ver      BIGINT NOT NULL DEFAULT 0 COMMENT 'commits that applied likes: Redis applies them in this order',
  collect_total BIGINT NOT NULL DEFAULT 0,
  collect_ver   BIGINT NOT NULL DEFAULT 0,
  comment_total BIGINT NOT NULL DEFAULT 0,
  comment_ver   BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (target_type, target_id)
);

CREATE TABLE IF NOT EXISTS user_counter (
  user_id                 BIGINT NOT NULL,
  followers_total         BIGINT NOT NULL DEFAULT 0,
  following_total         BIGINT NOT NULL DEFAULT 0,
  posts_total             BIGINT NOT NULL DEFAULT 0,
  likes_received_total    BIGINT NOT NULL DEFAULT 0,
  collects_received_total BIGINT NOT NULL DEFAULT 0,
  ver                     BIGINT NOT NULL DEFAULT 0 COMMENT 'changes so far',
  PRIMARY KEY (user_id)
);
