-- The reign guard: the masters of Redis under which commits are applied.

-- reactions: one row a master of Redis, with the name of its reign. A consumer whose master has another name was
-- deposed, or follows one that was; see docs/decisions/0007-detect-lost-and-restored-data-by-a-reign-and-an-epoch.md.
CREATE TABLE IF NOT EXISTS redis_reign (
  first_slot SMALLINT UNSIGNED NOT NULL COMMENT 'lowest slot of the shards of the master; 0 for a single Redis',
  reign      CHAR(40) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'master_replid of the master',
  PRIMARY KEY (first_slot)
);
