-- The epoch of the Redis Cluster when it was last looked at: it stood among watermarks, which are seqs.

CREATE TABLE IF NOT EXISTS redis_epoch (
  id       TINYINT NOT NULL COMMENT 'always 1',
  epoch    BIGINT  NOT NULL COMMENT 'higher after each change of a master',
  settling BIGINT  NULL COMMENT 'the epoch whose failover is being followed',
  reached  BIGINT  NULL COMMENT 'reaction_log is settled again to here, inclusive',
  PRIMARY KEY (id)
);

INSERT IGNORE INTO redis_epoch (id, epoch)
SELECT 1, seq FROM watermark WHERE name = 'redis_epoch';

DELETE FROM watermark WHERE name = 'redis_epoch';
