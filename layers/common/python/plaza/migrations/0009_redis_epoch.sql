-- The epoch of the Redis Cluster when it was last looked at, and how far a failover was followed.

CREATE TABLE IF NOT EXISTS redis_epoch (
  id       TINYINT NOT NULL COMMENT 'always 1',
  epoch    BIGINT  NOT NULL COMMENT 'higher after each change of a master',
  settling BIGINT  NULL COMMENT 'the epoch whose failover is being followed',
  reached  BIGINT  NULL COMMENT 'reaction_log is settled again to here, inclusive',
  PRIMARY KEY (id)
);
