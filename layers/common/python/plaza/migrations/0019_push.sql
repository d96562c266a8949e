-- Push messages: the devices of users, what they want, and up to where their bells were pushed. Only additions.

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
