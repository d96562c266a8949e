-- The total in the reaction log: the newest row of a target and kind has it. Only an addition.

ALTER TABLE reaction_log
  ADD COLUMN total BIGINT NULL COMMENT 'the counter at db_version; NULL: stored by a version before',
  ALGORITHM=INSTANT;
