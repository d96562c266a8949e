-- Edited and hidden content, blocks, reports, withdrawn vouchers, shops by name. Only additions: functions of the
-- version before run on this schema.

ALTER TABLE content
  ADD COLUMN version   BIGINT      NOT NULL DEFAULT 1 COMMENT 'number of changes of the text and of its hidden state',
  ADD COLUMN edited_at DATETIME(6) NULL COMMENT 'when the author changed the text last',
  ADD COLUMN hidden_at DATETIME(6) NULL COMMENT 'when a moderator hid it; only its author may read it since',
  ADD COLUMN hidden_by BIGINT      NULL COMMENT 'the moderator';

ALTER TABLE voucher
  ADD COLUMN withdrawn_at DATETIME(6) NULL COMMENT 'when an admin withdrew it: no order succeeds since',
  ADD COLUMN withdrawn_by BIGINT      NULL COMMENT 'the admin';

ALTER TABLE shop
  ADD KEY by_name (deleted_at, name, id),
  ADD KEY by_type_and_name (type_id, deleted_at, name, id);

-- blocks: a user who is blocked by another.
CREATE TABLE IF NOT EXISTS user_block (
  blocker_id BIGINT      NOT NULL,
  blocked_id BIGINT      NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (blocker_id, blocked_id),
  KEY by_time (blocker_id, created_at, blocked_id)
);

-- moderation: a report of a user about content or about another user.
CREATE TABLE IF NOT EXISTS report (
  id          BIGINT        NOT NULL,
  reporter_id BIGINT        NOT NULL,
  target_type VARCHAR(16)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT        NOT NULL,
  reason      VARCHAR(16)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  details     VARCHAR(1000) NULL,
  is_open     TINYINT       NULL DEFAULT 1 COMMENT '1 until it is resolved, then NULL: a reporter has at most one open report of a target',
  outcome     VARCHAR(16)   CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'upheld, dismissed',
  created_at  DATETIME(6)   NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  resolved_at DATETIME(6)   NULL,
  resolved_by BIGINT        NULL,
  PRIMARY KEY (id),
  UNIQUE KEY one_open (reporter_id, target_type, target_id, is_open),
  KEY by_state (is_open, id)
);
