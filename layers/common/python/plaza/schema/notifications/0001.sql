-- The bell of each user, and push messages.

-- bell: the bell of a user. Its row stays when the user is erased, so that positions never repeat.
CREATE TABLE IF NOT EXISTS bell (
  user_id  BIGINT NOT NULL,
  position BIGINT NOT NULL DEFAULT 0 COMMENT 'commits that changed this bell',
  unread   INT    NOT NULL DEFAULT 0 COMMENT 'groups with fresh > 0',
  blocking INT    NOT NULL DEFAULT 0 COMMENT 'rows of user_block of this blocker',
  PRIMARY KEY (user_id)
);

-- bell: what rang for a user about one subject. Its writers lock the row of bell. One index serves lists, marks and
-- pushes, so that a new group is written to one.
CREATE TABLE IF NOT EXISTS bell_group (
  user_id        BIGINT      NOT NULL,
  kind           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'like, comment, follow',
  subject_type   VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  subject_id     BIGINT      NOT NULL,
  fresh          BIGINT      NOT NULL COMMENT 'what counts now and rang after read_position',
  read_position  BIGINT      NOT NULL COMMENT 'of a new row: the position of the bell before it',
  changed        BIGINT      NOT NULL COMMENT 'position of the last ring',
  shown_position BIGINT      NOT NULL COMMENT 'position at which the list last displayed it, or read_position',
  fresh_after    BIGINT      NOT NULL COMMENT 'of fresh, what rang after shown_position',
  is_open        TINYINT     NOT NULL COMMENT '1: it rang after read_position, even if all of it was taken back',
  changed_at     DATETIME(6) NOT NULL,
  changed_on     DATE        NOT NULL COMMENT 'day of changed_at, so that a ring changes the index of ages once a day',
  PRIMARY KEY (user_id, kind, subject_type, subject_id),
  KEY by_state (user_id, is_open, changed, kind, subject_type, subject_id),
  KEY by_age (is_open, changed_on)
);

-- push: a browser that receives push messages. A browser has one endpoint, so it belongs to the last user who added it.
CREATE TABLE IF NOT EXISTS push_subscription (
  user_id       BIGINT        NOT NULL,
  endpoint_hash BINARY(32)    NOT NULL COMMENT 'SHA-256 of endpoint',
  endpoint      VARCHAR(1024) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'URL at a push service',
  public_key    VARCHAR(100)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'p256dh of the browser',
  auth_secret   VARCHAR(40)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'auth of the browser',
  created_at    DATETIME(6)   NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (user_id, endpoint_hash),
  UNIQUE KEY by_endpoint (endpoint_hash)
);

-- push: a user with a subscription, now or before.
CREATE TABLE IF NOT EXISTS push_recipient (
  user_id         BIGINT      NOT NULL,
  pushed_position BIGINT      NOT NULL COMMENT 'position of the bell up to which rings were pushed',
  due_at          DATETIME(6) NULL COMMENT 'until then a message is on its way that pushes what rings',
  PRIMARY KEY (user_id)
);

-- push: what a user receives, by kind and channel. Without a row it is on.
CREATE TABLE IF NOT EXISTS notification_preference (
  user_id BIGINT      NOT NULL,
  kind    VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'like, comment, follow, order, waitlist, report',
  channel VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'push',
  is_on   TINYINT     NOT NULL,
  PRIMARY KEY (user_id, kind, channel)
);
