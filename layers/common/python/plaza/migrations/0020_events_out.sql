-- Events out: the log of comments, orders and reports, which other systems read with the reaction log. Only additions:
-- functions of the version before append nothing, so what they do is no event.

-- event_log: what happened to a comment, an order or a report. Never updated. Transactions do not commit in the order
-- of seq; event_gate makes it safe to read in that order (docs/decisions/0080-let-servers-read-events.md).
CREATE TABLE IF NOT EXISTS event_log (
  seq         BIGINT      NOT NULL AUTO_INCREMENT COMMENT 'order of insertion, with gaps',
  kind        VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'comment.created',
  actor_id    BIGINT      NOT NULL,
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'post, voucher, or what was reported',
  target_id   BIGINT      NOT NULL,
  resource_id BIGINT      NOT NULL COMMENT 'the comment, order or report',
  detail      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'reason or outcome',
  created_at  DATETIME(6) NOT NULL,
  PRIMARY KEY (seq),
  KEY by_time (created_at)
);

-- event_log: one row. As log_gate: a transaction that appends to event_log holds a shared lock on it until the commit.
CREATE TABLE IF NOT EXISTS event_gate (
  id TINYINT NOT NULL,
  PRIMARY KEY (id)
);

INSERT IGNORE INTO event_gate (id) VALUES (1);

-- event_log: one row, up to which seq all rows of both logs are committed or rolled back. Of all readers one moves it,
-- each two seconds at most, because it waits for the writers of the logs, and they for it.
CREATE TABLE IF NOT EXISTS event_head (
  id           TINYINT     NOT NULL,
  epoch        INT         NOT NULL DEFAULT 0 COMMENT 'of log_gate',
  reaction_seq BIGINT      NOT NULL DEFAULT 0 COMMENT 'of reaction_log',
  event_seq    BIGINT      NOT NULL DEFAULT 0 COMMENT 'of event_log',
  claimed_at   DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00' COMMENT 'when a reader began to move it',
  PRIMARY KEY (id)
);

INSERT IGNORE INTO event_head (id) VALUES (1);

-- event_log: the first head of a minute, to find the position of a time.
CREATE TABLE IF NOT EXISTS event_position (
  minute       BIGINT NOT NULL COMMENT 'since 1970',
  epoch        INT    NOT NULL,
  reaction_seq BIGINT NOT NULL,
  event_seq    BIGINT NOT NULL,
  PRIMARY KEY (minute)
);

-- webhooks: where events are sent, and how far. Its secrets are derived from a key in Secrets Manager.
CREATE TABLE IF NOT EXISTS webhook (
  id            BIGINT       NOT NULL,
  url           VARCHAR(500) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  kinds         VARCHAR(500) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'types with commas; empty: all',
  state         VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'enabled, disabled, ended',
  secret_serial INT          NOT NULL DEFAULT 1 COMMENT 'rises with each rotation',
  rotated_at    DATETIME(6)  NULL COMMENT 'the secret before signs, too, for a day',
  reaction_seq  BIGINT       NOT NULL COMMENT 'events up to both seqs were received',
  event_seq     BIGINT       NOT NULL,
  read_s        BIGINT       NOT NULL COMMENT 'all others were stored after this time, in seconds since 1970',
  attempt       INT          NOT NULL DEFAULT 0 COMMENT 'the last batch that was sent; outcomes of others do not count',
  leased_until  DATETIME(6)  NOT NULL DEFAULT '1970-01-01 00:00:00' COMMENT 'no other batch is sent until then',
  next_at       DATETIME(6)  NOT NULL DEFAULT '1970-01-01 00:00:00' COMMENT 'when it is tried again',
  failures      INT          NOT NULL DEFAULT 0 COMMENT 'since the last event that was received',
  failing_since DATETIME(6)  NULL,
  last_error    VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at    DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id)
);
