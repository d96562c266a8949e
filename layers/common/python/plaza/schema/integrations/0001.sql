-- Webhooks.

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
