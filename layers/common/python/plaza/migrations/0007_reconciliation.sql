-- Reconciliation: what was compared with what, what differed, and what became of it.

CREATE TABLE IF NOT EXISTS reconciliation (
  id         BIGINT      NOT NULL AUTO_INCREMENT,
  is_open    TINYINT     NULL DEFAULT 1 COMMENT '1 until it has ended, then null: one at a time',
  started_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  ended_at   DATETIME(6) NULL COMMENT 'all was compared and all repairs were asked for',
  targets    BIGINT      NOT NULL DEFAULT 0 COMMENT 'this and what follows are written when it ends',
  relations  BIGINT      NOT NULL DEFAULT 0,
  users      BIGINT      NOT NULL DEFAULT 0,
  hot        BIGINT      NOT NULL DEFAULT 0 COMMENT 'what Redis held: targets, projections, filters',
  differing  BIGINT      NOT NULL DEFAULT 0,
  moving     BIGINT      NOT NULL DEFAULT 0 COMMENT 'passed over: it changed while it was looked at',
  why        TEXT        NULL COMMENT 'JSON: reason -> how many differences',
  PRIMARY KEY (id),
  UNIQUE KEY one_open (is_open)
);

-- A part is walked through by steps; whoever moves the cursor has done the step.
CREATE TABLE IF NOT EXISTS reconciliation_part (
  run_id    BIGINT       NOT NULL,
  part      VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  reached   VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'the cursor',
  is_done   TINYINT      NOT NULL DEFAULT 0,
  targets   BIGINT       NOT NULL DEFAULT 0,
  relations BIGINT       NOT NULL DEFAULT 0,
  users     BIGINT       NOT NULL DEFAULT 0,
  hot       BIGINT       NOT NULL DEFAULT 0,
  moving    BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, part)
);

-- What Redis holds and did not agree with MySQL at first sight: it is looked at once more.
CREATE TABLE IF NOT EXISTS reconciliation_suspect (
  id          BIGINT       NOT NULL AUTO_INCREMENT,
  run_id      BIGINT       NOT NULL,
  look        VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'held, filter',
  what        VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'like, comments, user, ...',
  target_type VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT       NOT NULL,
  seen        VARCHAR(512) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'what Redis said then; of a filter: whom it denied',
  PRIMARY KEY (id),
  UNIQUE KEY once (run_id, look, what, target_type, target_id)
);

CREATE TABLE IF NOT EXISTS reconciliation_finding (
  id          BIGINT       NOT NULL AUTO_INCREMENT,
  run_id      BIGINT       NOT NULL,
  reason      VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  what        VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_type VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT       NOT NULL,
  said        VARCHAR(500) NOT NULL,
  found_at    DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  repaired_at DATETIME(6)  NULL COMMENT 'put right, or found to be right by then',
  PRIMARY KEY (id),
  UNIQUE KEY once (run_id, reason, what, target_type, target_id)
);
