-- Gauges, and the comparisons of the reconciliation.

-- operations: the gauges of a minute, for plots. Deleted after a day.
CREATE TABLE IF NOT EXISTS gauge_sample (
  minute INT        NOT NULL COMMENT 'minutes since 1970, UTC',
  gauges MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'JSON: name of a gauge -> value',
  PRIMARY KEY (minute)
);

-- reconciliation: a run, and its results.
CREATE TABLE IF NOT EXISTS reconciliation (
  id            BIGINT      NOT NULL AUTO_INCREMENT,
  is_open       TINYINT     NULL DEFAULT 1 COMMENT '1 until the run has ended, then NULL: at most one run is open',
  started_at    DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  ended_at      DATETIME(6) NULL COMMENT 'when all stores were compared and all repairs requested',
  targets       BIGINT      NOT NULL DEFAULT 0 COMMENT 'this and the following columns are written at the end',
  relations     BIGINT      NOT NULL DEFAULT 0,
  users         BIGINT      NOT NULL DEFAULT 0,
  cached        BIGINT      NOT NULL DEFAULT 0 COMMENT 'targets, projections and filters in Redis',
  differing     BIGINT      NOT NULL DEFAULT 0,
  skipped       BIGINT      NOT NULL DEFAULT 0 COMMENT 'not compared, because they changed during the comparison',
  changed       BIGINT      NOT NULL DEFAULT 0 COMMENT 'subjects compared because they had changed',
  reason_counts TEXT        CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'JSON: reason -> number of differences',
  PRIMARY KEY (id),
  UNIQUE KEY one_open (is_open)
);

-- reconciliation: a part of a run, processed in steps. A step is done when its update of the cursor succeeds.
CREATE TABLE IF NOT EXISTS reconciliation_part (
  run_id    BIGINT       NOT NULL,
  part      VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  resume_after  VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'the cursor',
  is_done   TINYINT      NOT NULL DEFAULT 0,
  quota     BIGINT       NULL COMMENT 'subjects to compare in this run; NULL: all',
  steps     INT          NOT NULL DEFAULT 0 COMMENT 'steps so far',
  targets   BIGINT       NOT NULL DEFAULT 0,
  relations BIGINT       NOT NULL DEFAULT 0,
  users     BIGINT       NOT NULL DEFAULT 0,
  cached    BIGINT       NOT NULL DEFAULT 0,
  skipped   BIGINT       NOT NULL DEFAULT 0,
  changed   BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, part)
);

-- reconciliation: where a comparison continues, and the progress of its open cycle. Of the name "log": the seq up to
-- which events of reaction_log have dirty rows, and when the latest run had added all of them.
CREATE TABLE IF NOT EXISTS reconciliation_cycle (
  name     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'of the comparison: users, targets:post',
  resume_after VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'compared up to here, inclusive; empty: the cycle has ended',
  compared BIGINT      NOT NULL DEFAULT 0 COMMENT 'subjects compared in the cycle',
  expected BIGINT      NOT NULL DEFAULT 0 COMMENT 'about how many subjects the whole cycle has; 0 of the log',
  began_at DATETIME(6) NOT NULL,
  ended_at DATETIME(6) NULL COMMENT 'end of the latest complete cycle',
  PRIMARY KEY (name)
);

-- reconciliation: a subject that changed since it was compared last.
CREATE TABLE IF NOT EXISTS reconciliation_dirty (
  name       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'of the comparison',
  subject_id BIGINT      NOT NULL,
  PRIMARY KEY (name, subject_id)
);

-- reconciliation: a value in Redis that differed from MySQL once and is compared a second time.
CREATE TABLE IF NOT EXISTS reconciliation_suspect (
  id          BIGINT       NOT NULL AUTO_INCREMENT,
  run_id      BIGINT       NOT NULL,
  check_kind  VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'state, filter',
  what        VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'like, comments, user, ...',
  target_type VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT       NOT NULL,
  observed    VARCHAR(512) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the value in Redis; of a filter: the ids that it lacked',
  PRIMARY KEY (id),
  UNIQUE KEY once (run_id, check_kind, what, target_type, target_id)
);

-- reconciliation: a difference that a run found, and whether it was repaired.
CREATE TABLE IF NOT EXISTS reconciliation_finding (
  id          BIGINT       NOT NULL AUTO_INCREMENT,
  run_id      BIGINT       NOT NULL,
  reason      VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  what        VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_type VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT       NOT NULL,
  details     VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  found_at    DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  repaired_at DATETIME(6)  NULL COMMENT 'when it was repaired, or no longer found',
  PRIMARY KEY (id),
  UNIQUE KEY once (run_id, reason, what, target_type, target_id)
);
