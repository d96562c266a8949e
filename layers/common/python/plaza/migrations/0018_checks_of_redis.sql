-- The heads of checks of Redis are kept a minute apart. Only an addition: the version before keeps each.

ALTER TABLE redis_epoch
  ADD COLUMN checked_at DATETIME(6) NULL COMMENT 'when the heads in watermark were kept; NULL: by a version before',
  ALGORITHM=INSTANT;
