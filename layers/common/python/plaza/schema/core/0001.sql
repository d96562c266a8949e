-- Reactions, counters, both logs, and what every area shares.
--
-- Each table's comment names its owner and, after a colon, what a row is. The owner is the context, or the module of
-- infra, that writes the table; tests/unit/policy/test_owned_data.py compares these owners with the code and lists the
-- other readers. The runner of migrations creates the table schema_migration (infra/mysql/migrations.py).
--
-- Each statement runs on MySQL 8 and MariaDB 10.11 and is safe to repeat. Each text names its collation, because the
-- default differs between servers. Times are UTC. A `version` in microseconds is also the time and the order of the
-- change. `request_id` is the id of the HTTP request that created the row, as in its response and the logs; NULL:
-- unknown, because a sweep or a recovery sent the message again. It has no index, because the logs have the primary key
-- (docs/operations.md).


-- ---------------------------------------------------------------------------------- reactions, counters

-- reactions: the state of a target, a kind and an actor; the source of truth. A row whose state is 0 stays,
-- because its version is compared with those of late events.
CREATE TABLE IF NOT EXISTS reaction (
  target_type       VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id         BIGINT      NOT NULL,
  kind              VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  actor_id          BIGINT      NOT NULL,
  state             TINYINT     NOT NULL,
  version           BIGINT      NOT NULL COMMENT 'microseconds since 1970',
  notified_sequence BIGINT      NOT NULL DEFAULT 0 COMMENT 'sequence of its notification in the unread counter of the owner; 0: none',
  created_at        DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  updated_at        DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (target_type, target_id, kind, actor_id),
  KEY by_actor (actor_id, kind, state, version)
);

-- targets: an object of the app, of a type of TargetTypes. Plaza has no copy of it. `id` is the number of `external_id`,
-- see plaza/core/targets/types.py. The owner never changes.
CREATE TABLE IF NOT EXISTS external_target (
  type        VARCHAR(16)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  id          BIGINT        NOT NULL,
  external_id VARCHAR(64)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  owner_id    BIGINT        NULL COMMENT 'user; NULL: none',
  url         VARCHAR(2000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  created_at  DATETIME(6)   NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  deleted_at  DATETIME(6)   NULL,
  PRIMARY KEY (type, id),
  KEY by_owner (owner_id)
);

-- reactions: the rows of reaction of each target and kind with more than 2,000 active actors, in the order in which
-- they are listed. Complete for a target whose counter says so; see
-- docs/decisions/0072-sort-reactions-to-large-targets-only.md.
CREATE TABLE IF NOT EXISTS sorted_reaction (
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT      NOT NULL,
  kind        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state       TINYINT     NOT NULL,
  version     BIGINT      NOT NULL COMMENT 'microseconds since 1970',
  actor_id    BIGINT      NOT NULL,
  PRIMARY KEY (target_type, target_id, kind, state, version, actor_id)
);

-- reactions: a stored event and its change of the counter. Never updated. Transactions do not commit in the
-- order of seq; log_barrier makes it safe to read in that order (docs/decisions/0022-read-the-log-behind-a-barrier.md).
-- The context reaction_log creates, archives and drops the partitions.
CREATE TABLE IF NOT EXISTS reaction_log (
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT      NOT NULL,
  kind        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  actor_id    BIGINT      NOT NULL,
  version     BIGINT      NOT NULL COMMENT 'microseconds since 1970',
  state       TINYINT     NOT NULL,
  change_by   TINYINT     NOT NULL COMMENT 'change of the counter: 1, -1, 0',
  total       BIGINT      NOT NULL COMMENT 'the counter at db_version',
  db_version  BIGINT      NOT NULL COMMENT 'version of the counter after the commit, with the epoch',
  seq         BIGINT      NOT NULL AUTO_INCREMENT COMMENT 'order of insertion, with gaps',
  request_id  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  create_date DATE        NOT NULL COMMENT 'the UTC day of version',
  PRIMARY KEY (target_type, target_id, kind, actor_id, version, create_date),
  KEY by_seq (seq)
) PARTITION BY RANGE COLUMNS (create_date) (
  PARTITION p_max VALUES LESS THAN (MAXVALUE)
);

-- reaction_log: the checksums of a closed partition, computed page by page until it is archived and dropped.
CREATE TABLE IF NOT EXISTS reaction_log_sum (
  partition_name VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  head           BIGINT      NOT NULL COMMENT 'rows up to this seq are in the checksums, inclusive',
  document       TEXT        CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'JSON: the checksum of each day, and where the next page begins',
  PRIMARY KEY (partition_name)
);

-- reactions: one row. A transaction that appends to the log holds a shared lock on it until the commit; a
-- reader that needs all rows up to a seq to be committed takes an exclusive lock and releases it at once.
CREATE TABLE IF NOT EXISTS log_barrier (
  id    TINYINT NOT NULL,
  epoch INT     NOT NULL DEFAULT 0 COMMENT 'raised by 1 after MySQL is restored to an earlier moment',
  PRIMARY KEY (id)
);

INSERT IGNORE INTO log_barrier (id) VALUES (1);

-- reactions: one row, the last epoch read from the Redis Cluster, and the progress of the recovery after a
-- failover.
CREATE TABLE IF NOT EXISTS redis_epoch (
  id               TINYINT     NOT NULL COMMENT 'always 1',
  epoch            BIGINT      NOT NULL COMMENT 'rises with each change of a master',
  recovering_epoch BIGINT      NULL COMMENT 'the epoch whose failover is being recovered',
  recovered_seq    BIGINT      NULL COMMENT 'events of reaction_log are acknowledged again up to here, inclusive',
  checked_at       DATETIME(6) NULL COMMENT 'when the heads in watermark were stored; NULL: never',
  PRIMARY KEY (id)
);

-- reactions: one row a master of Redis, with the name of its term. A consumer whose master has another name was
-- deposed, or follows one that was; see docs/decisions/0007-detect-lost-and-restored-data.md.
CREATE TABLE IF NOT EXISTS redis_term (
  first_slot SMALLINT UNSIGNED NOT NULL COMMENT 'lowest slot of the shards of the master; 0 for a single Redis',
  term       CHAR(40)          CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'master_replid of the master',
  PRIMARY KEY (first_slot)
);

-- reactions: the seq up to which a reader has read the log.
CREATE TABLE IF NOT EXISTS watermark (
  name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  seq  BIGINT      NOT NULL COMMENT 'of reaction_log, inclusive',
  PRIMARY KEY (name)
);

-- counters: the total of a target and kind: of a kind of reaction, or of the comments of a post. A user is a target
-- too: its row here gives the reactions to the user a version and a lock of their own, while user_counter also changes
-- with the user's own actions.
CREATE TABLE IF NOT EXISTS counter (
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT      NOT NULL,
  kind        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  total       BIGINT      NOT NULL DEFAULT 0,
  version     BIGINT      NOT NULL DEFAULT 0 COMMENT 'commits that changed the total so far; Redis applies them in this order',
  sorted_at   BIGINT      NOT NULL DEFAULT 0 COMMENT 'version up to which sorted_reaction has the rows; negative: it is being filled; 0: it has none',
  ranked      BIGINT      NULL COMMENT 'the total of a ranked kind, NULL of any other, which writes no index',
  PRIMARY KEY (target_type, target_id, kind),
  KEY by_ranked (target_type, kind, ranked, target_id)
);

-- counters: the totals of a user.
CREATE TABLE IF NOT EXISTS user_counter (
  user_id                 BIGINT NOT NULL,
  followers_total         BIGINT NOT NULL DEFAULT 0,
  following_total         BIGINT NOT NULL DEFAULT 0,
  posts_total             BIGINT NOT NULL DEFAULT 0,
  likes_received_total    BIGINT NOT NULL DEFAULT 0,
  collects_received_total BIGINT NOT NULL DEFAULT 0,
  version                 BIGINT NOT NULL DEFAULT 0 COMMENT 'number of changes',
  PRIMARY KEY (user_id)
);


-- -------------------------------------------------------------------------------------------- event log

-- event_log: what happened to a comment, an order or a report. Never updated. Transactions do not commit in the order
-- of seq; event_barrier makes it safe to read in that order (docs/decisions/0080-let-servers-read-events.md).
CREATE TABLE IF NOT EXISTS event_log (
  seq         BIGINT      NOT NULL AUTO_INCREMENT COMMENT 'order of insertion, with gaps',
  kind        VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'comment.created',
  actor_id    BIGINT      NOT NULL,
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'post, voucher, or what was reported',
  target_id   BIGINT      NOT NULL,
  resource_id BIGINT      NOT NULL COMMENT 'the comment, order or report',
  detail      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'reason or outcome',
  key_id      CHAR(16)    CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the key of a server that acted for actor_id',
  created_at  DATETIME(6) NOT NULL,
  PRIMARY KEY (seq),
  KEY by_time (created_at)
);

-- event_log: one row. As log_barrier: a transaction that appends to event_log holds a shared lock on it until the commit.
CREATE TABLE IF NOT EXISTS event_barrier (
  id TINYINT NOT NULL,
  PRIMARY KEY (id)
);

INSERT IGNORE INTO event_barrier (id) VALUES (1);

-- event_log: one row, up to which seq all rows of both logs are committed or rolled back. Of all readers one moves it,
-- each two seconds at most, because it waits for the writers of the logs, and they for it.
CREATE TABLE IF NOT EXISTS event_head (
  id           TINYINT     NOT NULL,
  epoch        INT         NOT NULL DEFAULT 0 COMMENT 'of log_barrier',
  reaction_seq BIGINT      NOT NULL DEFAULT 0 COMMENT 'of reaction_log',
  event_seq    BIGINT      NOT NULL DEFAULT 0 COMMENT 'of event_log',
  claimed_at   DATETIME(6) NOT NULL DEFAULT '1970-01-01 00:00:00' COMMENT 'when a reader began to move it',
  PRIMARY KEY (id)
);

INSERT IGNORE INTO event_head (id) VALUES (1);

-- event_log: the first head of a minute, to find the offset of a time.
CREATE TABLE IF NOT EXISTS event_offset (
  minute       BIGINT NOT NULL COMMENT 'since 1970',
  epoch        INT    NOT NULL,
  reaction_seq BIGINT NOT NULL,
  event_seq    BIGINT NOT NULL,
  PRIMARY KEY (minute)
);


-- ------------------------------------------------------------------- switches, idempotency keys, messages

-- switches: one change of the switches by an operator. The row with the highest version has the present switches.
CREATE TABLE IF NOT EXISTS switch_change (
  version    BIGINT       NOT NULL,
  document   TEXT         CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'JSON: all switches after the change',
  reason     VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  changed_by BIGINT       NOT NULL COMMENT 'operator',
  changed_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (version)
);

-- idempotency: the resource that a user created with an Idempotency-Key. The primary key makes a repeated
-- request create nothing.
CREATE TABLE IF NOT EXISTS idempotency_key (
  user_id        BIGINT      NOT NULL,
  key_sha256     BINARY(32)  NOT NULL,
  request_sha256 BINARY(32)  NOT NULL COMMENT 'of the first request with the key',
  resource_type  VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  resource_id    BIGINT      NOT NULL,
  created_at     DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (user_id, key_sha256),
  KEY by_age (created_at)
);

-- infra/queues/spill: a message that SQS refused. The sweeper sends it again.
CREATE TABLE IF NOT EXISTS spilled_message (
  id         BIGINT      NOT NULL AUTO_INCREMENT,
  queue      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  body       MEDIUMTEXT  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  KEY by_queue (queue, id)
);
