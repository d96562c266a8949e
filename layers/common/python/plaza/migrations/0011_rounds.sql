-- The reconciliation compares what changed since its last run, and everything in rounds of 28 days. Only additions:
-- a run that the version before began has no shares, so its parts compare everything. The checksum of a closed
-- partition of the log is computed in pages.

-- reconciliation: where a comparison continues, and the progress of its open round. Of the name "log": the seq up to
-- which events of reaction_log are marked, and when the latest run had marked all of them.
CREATE TABLE IF NOT EXISTS reconciliation_round (
  name     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'of the comparison: users, targets:post',
  position VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'compared up to here, inclusive; empty: the round has ended',
  compared BIGINT      NOT NULL DEFAULT 0 COMMENT 'subjects compared in the round',
  expected BIGINT      NOT NULL DEFAULT 0 COMMENT 'about how many subjects the whole round has; 0 of the log',
  began_at DATETIME(6) NOT NULL,
  ended_at DATETIME(6) NULL COMMENT 'end of the latest complete round',
  PRIMARY KEY (name)
);

-- reconciliation: a subject that changed since it was compared last.
CREATE TABLE IF NOT EXISTS reconciliation_mark (
  name       VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'of the comparison',
  subject_id BIGINT      NOT NULL,
  PRIMARY KEY (name, subject_id)
);

ALTER TABLE reconciliation
  ADD COLUMN changed BIGINT NOT NULL DEFAULT 0 COMMENT 'subjects compared because they had changed';

ALTER TABLE reconciliation_part
  ADD COLUMN changed BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN steps   INT    NOT NULL DEFAULT 0 COMMENT 'steps so far',
  ADD COLUMN share   BIGINT NULL COMMENT 'subjects to compare in this run; NULL: all';

-- reaction_log: the checksums of a closed partition, computed page by page until it is archived and dropped.
CREATE TABLE IF NOT EXISTS reaction_log_sum (
  partition_name VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  head           BIGINT NOT NULL COMMENT 'rows up to this seq are in the checksums, inclusive',
  document       TEXT   NOT NULL COMMENT 'JSON: the checksum of each day, and where the next page begins',
  PRIMARY KEY (partition_name)
);
