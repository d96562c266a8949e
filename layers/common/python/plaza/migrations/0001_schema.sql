-- The schema. Each table's comment names its owner and, after a colon, what a row is.
--
-- The owner is the context, or the module of infra, that writes the table. tests/unit/policy/test_owned_data.py
-- compares these owners with the code and lists the other readers. The runner of migrations creates the table
-- schema_migration (infra/mysql/migrations.py).
--
-- Each statement runs on MySQL 8 and MariaDB 10.11 and is safe to repeat. Times are UTC. A `version` in
-- microseconds is also the time and the order of the change. `request_id` is the id of the HTTP request that
-- created the row, as in its response and the logs; NULL: unknown, because a sweep or a recovery sent the
-- message again. It has no index, because the logs have the primary key (docs/operations.md).


-- ------------------------------------------------------------------------------------ users and auth

-- users: a user and the public profile.
CREATE TABLE IF NOT EXISTS user (
  id         BIGINT       NOT NULL,
  nickname   VARCHAR(64)  NOT NULL,
  avatar     VARCHAR(512) NULL COMMENT 'a URL',
  role       VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'user',
  time_zone  VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'UTC' COMMENT 'IANA name',
  latest_day DATE         NULL COMMENT 'local day at the last change of the time zone: the local day is never earlier',
  version    BIGINT       NOT NULL DEFAULT 1 COMMENT 'number of changes of the profile',
  created_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id)
);

-- users: the phone of a user. A table of its own, so that no query of profiles reads it.
CREATE TABLE IF NOT EXISTS user_phone (
  phone      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'E.164',
  user_id    BIGINT      NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (phone),
  UNIQUE KEY by_user (user_id)
);

-- auth: an open session.
CREATE TABLE IF NOT EXISTS session (
  token_sha256 BINARY(32)  NOT NULL COMMENT 'the token itself is not stored',
  user_id      BIGINT      NOT NULL,
  created_at   DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  expires_at   DATETIME(6) NOT NULL,
  PRIMARY KEY (token_sha256),
  KEY by_user (user_id),
  KEY by_expiry (expires_at)
);


-- ------------------------------------------------------------------------------------------- content

-- content: a post, a comment or a review. A deleted row stays, and its reactions stay counted.
CREATE TABLE IF NOT EXISTS content (
  content_type VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'post, comment, review',
  content_id   BIGINT       NOT NULL,
  author_id    BIGINT       NOT NULL,
  parent_id    BIGINT       NULL COMMENT 'the post of a comment, the shop of a review',
  kind         VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of a post: note, blog',
  title        VARCHAR(200) NULL,
  body         TEXT         NULL,
  images       TEXT         NULL COMMENT 'JSON: at most 9 URLs',
  score        TINYINT      NULL COMMENT 'of a review: 1 to 5',
  votes        BIGINT       NOT NULL DEFAULT 0 COMMENT 'of a review: its likes, rolled up by recommendations',
  request_id   VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at   DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  deleted_at   DATETIME(6)  NULL,
  PRIMARY KEY (content_type, content_id),
  KEY by_author (content_type, author_id, deleted_at, created_at, content_id),
  KEY by_parent (content_type, parent_id, deleted_at, created_at, content_id),
  KEY by_votes (content_type, parent_id, deleted_at, votes, content_id)
);

-- content: a delta of a post's comment counter that a refresh adds later, because the counter was locked when
-- the comment was written or deleted. Counter plus deltas = number of comments.
CREATE TABLE IF NOT EXISTS delayed_comment_count (
  post_id    BIGINT  NOT NULL,
  comment_id BIGINT  NOT NULL,
  delta      TINYINT NOT NULL COMMENT '1: comment written, -1: comment deleted',
  PRIMARY KEY (post_id, comment_id, delta)
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


-- -------------------------------------------------------------------------------- reactions, counters

-- reactions: the state of a target, a kind and an actor; the source of truth. A row whose state is 0 stays,
-- because its version is compared with those of late events.
CREATE TABLE IF NOT EXISTS reaction (
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT      NOT NULL,
  kind        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  actor_id    BIGINT      NOT NULL,
  state       TINYINT     NOT NULL,
  version     BIGINT      NOT NULL COMMENT 'microseconds since 1970',
  created_at  DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  updated_at  DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (target_type, target_id, kind, actor_id),
  KEY by_actor (actor_id, kind, state, version),
  KEY by_target (target_type, target_id, kind, state, version)
);

-- reactions: a stored event and its change of the counter. Never updated. Transactions do not commit in the
-- order of seq; log_gate makes it safe to read in that order (docs/decisions/0022-read-the-log-behind-a-gate.md).
-- The context reaction_log creates, archives and drops the partitions.
CREATE TABLE IF NOT EXISTS reaction_log (
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT      NOT NULL,
  kind        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  actor_id    BIGINT      NOT NULL,
  version     BIGINT      NOT NULL COMMENT 'microseconds since 1970',
  state       TINYINT     NOT NULL,
  change_by   TINYINT     NOT NULL COMMENT 'change of the counter: 1, -1, 0',
  db_version  BIGINT      NOT NULL COMMENT 'version of the counter after the commit, with the epoch',
  seq         BIGINT      NOT NULL AUTO_INCREMENT COMMENT 'order of insertion, with gaps',
  request_id  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  create_date DATE        NOT NULL COMMENT 'the UTC day of version',
  PRIMARY KEY (target_type, target_id, kind, actor_id, version, create_date),
  KEY by_seq (seq)
) PARTITION BY RANGE COLUMNS (create_date) (
  PARTITION p_max VALUES LESS THAN (MAXVALUE)
);

-- reactions: one row. A transaction that appends to the log holds a shared lock on it until the commit; a
-- reader that needs all rows up to a seq to be committed takes an exclusive lock and releases it at once.
CREATE TABLE IF NOT EXISTS log_gate (
  id    TINYINT NOT NULL,
  epoch INT     NOT NULL DEFAULT 0 COMMENT 'raised by 1 after MySQL is restored to an earlier moment',
  PRIMARY KEY (id)
);

INSERT IGNORE INTO log_gate (id) VALUES (1);

-- reactions: one row, the last epoch read from the Redis Cluster, and the progress of the recovery after a
-- failover.
CREATE TABLE IF NOT EXISTS redis_epoch (
  id               TINYINT NOT NULL COMMENT 'always 1',
  epoch            BIGINT  NOT NULL COMMENT 'rises with each change of a master',
  recovering_epoch BIGINT NULL COMMENT 'the epoch whose failover is being recovered',
  recovered_seq    BIGINT NULL COMMENT 'events of reaction_log are acknowledged again up to here, inclusive',
  PRIMARY KEY (id)
);

-- counters: the totals of a target. A user is a target too: its row here gives the reactions to the user a
-- version and a lock of their own, while user_counter also changes with the user's own actions.
CREATE TABLE IF NOT EXISTS content_counter (
  target_type     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id       BIGINT      NOT NULL,
  like_total      BIGINT      NOT NULL DEFAULT 0,
  like_version    BIGINT      NOT NULL DEFAULT 0 COMMENT 'commits with likes so far; Redis applies them in this order',
  collect_total   BIGINT      NOT NULL DEFAULT 0,
  collect_version BIGINT      NOT NULL DEFAULT 0,
  comment_total   BIGINT      NOT NULL DEFAULT 0,
  comment_version BIGINT      NOT NULL DEFAULT 0,
  follow_total    BIGINT      NOT NULL DEFAULT 0,
  follow_version  BIGINT      NOT NULL DEFAULT 0,
  PRIMARY KEY (target_type, target_id),
  KEY by_likes (target_type, like_total, target_id)
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


-- ----------------------------------------------------------------------------- recommendations, feed

-- recommendations: the position of a reader of the log.
CREATE TABLE IF NOT EXISTS watermark (
  name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  seq  BIGINT      NOT NULL COMMENT 'reaction_log is rolled up to here, inclusive',
  PRIMARY KEY (name)
);

-- recommendations: a shop whose list of recommended reviews is stale.
CREATE TABLE IF NOT EXISTS stale_list (
  shop_id BIGINT NOT NULL,
  seq     BIGINT NOT NULL COMMENT 'of the newest event of a review of the shop',
  PRIMARY KEY (shop_id)
);

-- recommendations: the likes of a post in an hour.
CREATE TABLE IF NOT EXISTS post_hour (
  hour    INT    NOT NULL COMMENT 'of the versions: hours since 1970, UTC',
  post_id BIGINT NOT NULL,
  net     BIGINT NOT NULL COMMENT 'likes minus unlikes in the hour',
  PRIMARY KEY (hour, post_id)
);

-- feed: an author whose posts are pulled by readers, not pushed to followers. Never deleted.
CREATE TABLE IF NOT EXISTS star (
  user_id   BIGINT      NOT NULL,
  since     DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  announced TINYINT     NOT NULL DEFAULT 0 COMMENT '1: all followers'' inboxes have the star; until then posts are pushed',
  PRIMARY KEY (user_id)
);


-- --------------------------------------------------------------------------------------------- shops

-- shops: a shop type.
CREATE TABLE IF NOT EXISTS shop_type (
  id   BIGINT       NOT NULL,
  name VARCHAR(64)  NOT NULL,
  icon VARCHAR(512) NULL COMMENT 'a URL',
  sort INT          NOT NULL DEFAULT 0 COMMENT 'types are listed in ascending order',
  PRIMARY KEY (id)
);

-- shops: a shop. The type and the place are optional; without a place no search finds it nearby.
CREATE TABLE IF NOT EXISTS shop (
  id              BIGINT       NOT NULL,
  name            VARCHAR(200) NOT NULL,
  type_id         BIGINT       NULL,
  area            VARCHAR(64)  NULL,
  address         VARCHAR(255) NULL,
  x               DOUBLE       NULL COMMENT 'longitude, degrees, WGS 84',
  y               DOUBLE       NULL COMMENT 'latitude, degrees, WGS 84',
  images          TEXT         NULL COMMENT 'JSON: at most 9 URLs',
  avg_price_cents INT          NULL COMMENT 'per person',
  open_hours      VARCHAR(200) NULL,
  version         BIGINT       NOT NULL DEFAULT 1 COMMENT 'number of changes',
  created_at      DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  updated_at      DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  deleted_at      DATETIME(6)  NULL,
  PRIMARY KEY (id),
  KEY by_type (type_id, id),
  KEY by_type_and_place (type_id, y, x),
  KEY by_place (y, x)
);


-- --------------------------------------------------------------------------------------- flash sales

-- flash_sales: a voucher in a flash sale.
CREATE TABLE IF NOT EXISTS voucher (
  id            BIGINT       NOT NULL,
  shop_id       BIGINT       NOT NULL,
  title         VARCHAR(200) NOT NULL,
  price_cents   BIGINT       NOT NULL,
  initial_stock INT          NOT NULL COMMENT 'units on sale',
  stock         INT          NOT NULL COMMENT 'units without a successful order',
  opens_at      DATETIME(6)  NOT NULL,
  closes_at     DATETIME(6)  NOT NULL,
  generation    BIGINT       NOT NULL DEFAULT 0 COMMENT 'number of times that its state was loaded into Redis',
  finalized_at  DATETIME(6)  NULL COMMENT 'when the closed sale had no pending order and equal stock in Redis',
  created_by    BIGINT       NOT NULL,
  created_at    DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  KEY by_shop (shop_id, id),
  KEY by_finalized (finalized_at, opens_at),
  CONSTRAINT voucher_never_oversold CHECK (stock BETWEEN 0 AND initial_stock)
);

-- flash_sales: a decided order; the first insert decides between success and failure. one_per_buyer limits a
-- buyer to one successful order of a voucher, because holder_id is NULL in a failed order.
CREATE TABLE IF NOT EXISTS voucher_order (
  order_id   BIGINT      NOT NULL,
  voucher_id BIGINT      NOT NULL,
  buyer_id   BIGINT      NOT NULL,
  holder_id  BIGINT      NULL COMMENT 'buyer_id of a successful order, NULL of a failed order',
  reason     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of a failure: sold-out, already-bought, timed-out',
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  decided_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (order_id),
  UNIQUE KEY one_per_buyer (voucher_id, holder_id),
  KEY by_buyer (buyer_id, order_id),
  CONSTRAINT success_or_failure CHECK ((holder_id IS NULL) <> (reason IS NULL))
);

-- flash_sales: a reservation that SQS refused, until it is decided. The key is the identity of an order.
CREATE TABLE IF NOT EXISTS order_outbox (
  order_id   BIGINT      NOT NULL,
  voucher_id BIGINT      NOT NULL,
  buyer_id   BIGINT      NOT NULL,
  generation BIGINT      NOT NULL COMMENT 'generation of the sale that the reservation belongs to',
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  stored_at  DATETIME(6) NOT NULL,
  PRIMARY KEY (order_id, voucher_id, buyer_id),
  KEY by_voucher (voucher_id, order_id)
);


-- ----------------------------------------------------------------------------------------- check-ins

-- checkins: a day on which a user checked in.
CREATE TABLE IF NOT EXISTS checkin (
  user_id    BIGINT      NOT NULL,
  day        DATE        NOT NULL COMMENT 'local day in the time zone of the user',
  version    BIGINT      NOT NULL COMMENT 'time of acceptance, microseconds since 1970',
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (user_id, day)
);


-- ------------------------------------------------------------------------------------ reconciliation

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
  reason_counts TEXT     NULL COMMENT 'JSON: reason -> number of differences',
  PRIMARY KEY (id),
  UNIQUE KEY one_open (is_open)
);

-- reconciliation: a part of a run, processed in steps. A step is done when its update of the cursor succeeds.
CREATE TABLE IF NOT EXISTS reconciliation_part (
  run_id    BIGINT       NOT NULL,
  part      VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  position  VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '' COMMENT 'the cursor',
  is_done   TINYINT      NOT NULL DEFAULT 0,
  targets   BIGINT       NOT NULL DEFAULT 0,
  relations BIGINT       NOT NULL DEFAULT 0,
  users     BIGINT       NOT NULL DEFAULT 0,
  cached    BIGINT       NOT NULL DEFAULT 0,
  skipped   BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, part)
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
  details     VARCHAR(500) NOT NULL,
  found_at    DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  repaired_at DATETIME(6)  NULL COMMENT 'when it was repaired, or no longer found',
  PRIMARY KEY (id),
  UNIQUE KEY once (run_id, reason, what, target_type, target_id)
);


-- ------------------------------------------------------------------------------- binlog and messages

-- changes: the position in MySQL's binlog up to which changes were projected to Redis.
CREATE TABLE IF NOT EXISTS binlog_position (
  name       VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  log_file   VARCHAR(255) NOT NULL,
  log_pos    BIGINT       NOT NULL COMMENT 'the end of a transaction in that file, bytes',
  updated_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (name)
);

-- infra/queues/spill: a message that SQS refused. The sweeper sends it again.
CREATE TABLE IF NOT EXISTS spilled_message (
  id         BIGINT      NOT NULL AUTO_INCREMENT,
  queue      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  body       MEDIUMTEXT  NOT NULL,
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  KEY by_queue (queue, id)
);
