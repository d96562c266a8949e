-- The unread counter of each user, and push messages.

-- notifications: the unread counter of a user. Its row stays when the user is erased, so that sequences never repeat.
CREATE TABLE IF NOT EXISTS unread_counter (
  user_id  BIGINT NOT NULL,
  sequence BIGINT NOT NULL DEFAULT 0 COMMENT 'commits that changed this row',
  unread   INT    NOT NULL DEFAULT 0 COMMENT 'groups with fresh > 0',
  blocking INT    NOT NULL DEFAULT 0 COMMENT 'rows of user_block of this blocker',
  PRIMARY KEY (user_id)
);

-- notifications: what notified for a user about one subject. Its writers lock the row of unread_counter. One index serves lists, marks and
-- pushes, so that a new group is written to one.
CREATE TABLE IF NOT EXISTS notification_group (
  user_id        BIGINT      NOT NULL,
  kind           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'like, comment, follow',
  subject_type   VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  subject_id     BIGINT      NOT NULL,
  fresh          BIGINT      NOT NULL COMMENT 'what counts now and notified after read_sequence',
  read_sequence  BIGINT      NOT NULL COMMENT 'of a new row: the sequence of the unread counter before it',
  changed        BIGINT      NOT NULL COMMENT 'sequence of the last notification',
  shown_sequence BIGINT      NOT NULL COMMENT 'sequence at which the list last displayed it, or read_sequence',
  fresh_after    BIGINT      NOT NULL COMMENT 'of fresh, what notified after shown_sequence',
  is_open        TINYINT     NOT NULL COMMENT '1: it notified after read_sequence, even if all of it was taken back',
  changed_at     DATETIME(6) NOT NULL,
  changed_on     DATE        NOT NULL COMMENT 'day of changed_at, so that it changes the index of ages once a day',
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
  pushed_sequence BIGINT      NOT NULL COMMENT 'sequence of the unread counter up to which notifications were pushed',
  due_at          DATETIME(6) NULL COMMENT 'until then a message is on its way that pushes what notifies',
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
