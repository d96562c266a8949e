-- The schema: each table with its owner, a colon, and what a row is.
--
-- The owner is the context, or the module of infra, that writes the table. Who else reads it, and why, is
-- in tests/unit/policy/test_owned_data.py, which also compares the owners named here with the code. The
-- table of what was applied, schema_migration, is made by the runner (infra/migrations.py).
--
-- MySQL 8 and MariaDB 10.11 both take every statement, and each bears to be repeated. Times are UTC. A
-- `version` in microseconds is a version, a time and an order in one. A `request_id` is the request that made
-- the row: the client was answered with it, and the logs have it. NULL: it is unknown, as of what the
-- sweeper or a recovery sent again. It has no index: the logs name the primary key (docs/operations.md).


-- ------------------------------------------------------------------------------------ users and auth

-- users: a user, with what others are shown of them.
CREATE TABLE IF NOT EXISTS user (
  id         BIGINT       NOT NULL,
  nickname   VARCHAR(64)  NOT NULL,
  avatar     VARCHAR(512) NULL COMMENT 'a URL',
  role       VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'user',
  time_zone  VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'UTC' COMMENT 'IANA name',
  latest_day DATE         NULL COMMENT 'the day it was when the time zone was last changed: no earlier one comes again',
  version        BIGINT       NOT NULL DEFAULT 1 COMMENT 'changes of the profile so far',
  created_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id)
);

-- users: the phone of a user. Apart from the profile: what shows profiles never reads this.
CREATE TABLE IF NOT EXISTS user_phone (
  phone      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'E.164',
  user_id    BIGINT      NOT NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (phone),
  UNIQUE KEY by_user (user_id)
);

-- auth: a session that was opened and has not ended.
CREATE TABLE IF NOT EXISTS session (
  token_sha256 BINARY(32)  NOT NULL COMMENT 'the token itself is stored nowhere',
  user_id      BIGINT      NOT NULL,
  created_at   DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  expires_at   DATETIME(6) NOT NULL,
  PRIMARY KEY (token_sha256),
  KEY by_user (user_id),
  KEY by_expiry (expires_at)
);


-- ------------------------------------------------------------------------------------------- content

-- content: a post, a comment or a review. It stays when it is deleted, and what it received stays counted.
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

-- content: what is still to be added to the comments of a post, because its counter was locked when a
-- comment was written or deleted. Counter plus these = the comments there are.
CREATE TABLE IF NOT EXISTS delayed_comment_count (
  post_id    BIGINT  NOT NULL,
  comment_id BIGINT  NOT NULL,
  delta      TINYINT NOT NULL COMMENT '1: it was written, -1: it was deleted',
  PRIMARY KEY (post_id, comment_id, delta)
);

-- idempotency: what a user created under an Idempotency-Key. A creation that is sent twice under one key
-- is one: the primary key decides.
CREATE TABLE IF NOT EXISTS idempotency_key (
  user_id        BIGINT      NOT NULL,
  key_sha256     BINARY(32)  NOT NULL,
  request_sha256 BINARY(32)  NOT NULL COMMENT 'what was asked for under that key',
  resource_type  VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  resource_id    BIGINT      NOT NULL,
  created_at     DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (user_id, key_sha256),
  KEY by_age (created_at)
);


-- -------------------------------------------------------------------------------- reactions, counters

-- reactions: the present state of a target, a kind and an actor; the record. A row whose state went back
-- to 0 stays: its version is what makes late events late.
CREATE TABLE IF NOT EXISTS reaction (
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT      NOT NULL,
  kind        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  actor_id    BIGINT      NOT NULL,
  state       TINYINT     NOT NULL,
  version         BIGINT      NOT NULL COMMENT 'microseconds since 1970',
  created_at  DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  updated_at  DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (target_type, target_id, kind, actor_id),
  KEY by_actor (actor_id, kind, state, version),
  KEY by_target (target_type, target_id, kind, state, version)
);

-- reactions: an event that was saved, once, with what it changed. Never updated. Transactions don't commit
-- in the order of seq: log_gate is what makes it safe to read by it (docs/decisions/0022-read-the-log-behind-a-gate.md).
-- Partitions are made, archived and dropped by vote_log.
CREATE TABLE IF NOT EXISTS reaction_log (
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT      NOT NULL,
  kind        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  actor_id    BIGINT      NOT NULL,
  version         BIGINT      NOT NULL COMMENT 'microseconds since 1970',
  state       TINYINT     NOT NULL,
  change_by   TINYINT     NOT NULL COMMENT 'what the event changed in the count: 1, -1, 0',
  db_version    BIGINT      NOT NULL COMMENT 'version of the counter after its commit, with the epoch',
  seq         BIGINT      NOT NULL AUTO_INCREMENT COMMENT 'the order of appending, with gaps',
  request_id  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  create_date DATE        NOT NULL COMMENT 'the UTC day of version',
  PRIMARY KEY (target_type, target_id, kind, actor_id, version, create_date),
  KEY by_seq (seq)
) PARTITION BY RANGE COLUMNS (create_date) (
  PARTITION p_max VALUES LESS THAN (MAXVALUE)
);

-- reactions: one row. A transaction that appends to the log locks it shared until the commit; a reader that
-- needs everything up to some seq to be committed locks it alone for an instant.
CREATE TABLE IF NOT EXISTS log_gate (
  id    TINYINT NOT NULL,
  epoch INT     NOT NULL DEFAULT 0 COMMENT 'raised by one after MySQL was restored to an earlier moment',
  PRIMARY KEY (id)
);

INSERT IGNORE INTO log_gate (id) VALUES (1);

-- reactions: one row, the epoch of the Redis Cluster when it was last looked at, and how far the log was
-- followed after a failover.
CREATE TABLE IF NOT EXISTS redis_epoch (
  id       TINYINT NOT NULL COMMENT 'always 1',
  epoch    BIGINT  NOT NULL COMMENT 'higher after each change of a master',
  recovering_epoch BIGINT NULL COMMENT 'the epoch whose failover is being followed',
  recovered_seq BIGINT NULL COMMENT 'events of reaction_log are acknowledged again up to here, inclusive',
  PRIMARY KEY (id)
);

-- counters: the totals of a target. A user is a target, too: the row here gives the reactions to them a
-- version and a lock of their own, while user_counter moves with everything they do.
CREATE TABLE IF NOT EXISTS content_counter (
  target_type   VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id     BIGINT      NOT NULL,
  like_total    BIGINT      NOT NULL DEFAULT 0,
  like_version      BIGINT      NOT NULL DEFAULT 0 COMMENT 'commits that applied likes: Redis applies them in this order',
  collect_total BIGINT      NOT NULL DEFAULT 0,
  collect_version   BIGINT      NOT NULL DEFAULT 0,
  comment_total BIGINT      NOT NULL DEFAULT 0,
  comment_version   BIGINT      NOT NULL DEFAULT 0,
  follow_total  BIGINT      NOT NULL DEFAULT 0,
  follow_version    BIGINT      NOT NULL DEFAULT 0,
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
  version                     BIGINT NOT NULL DEFAULT 0 COMMENT 'changes so far',
  PRIMARY KEY (user_id)
);


-- ----------------------------------------------------------------------------- recommendations, feed

-- recommendations: how far a reader of the log has come.
CREATE TABLE IF NOT EXISTS watermark (
  name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  seq  BIGINT      NOT NULL COMMENT 'reaction_log is rolled up to here, inclusive',
  PRIMARY KEY (name)
);

-- recommendations: a shop whose list of recommended reviews is to be built again.
CREATE TABLE IF NOT EXISTS stale_list (
  shop_id BIGINT NOT NULL,
  seq     BIGINT NOT NULL COMMENT 'the newest event that moved the votes of one of its reviews',
  PRIMARY KEY (shop_id)
);

-- recommendations: the likes of a post in an hour.
CREATE TABLE IF NOT EXISTS post_hour (
  hour    INT    NOT NULL COMMENT 'hours since 1970, UTC, of the versions counted',
  post_id BIGINT NOT NULL,
  net     BIGINT NOT NULL COMMENT 'likes given in that hour less likes taken back',
  PRIMARY KEY (hour, post_id)
);

-- feed: an author whose posts are read from them rather than pushed to followers. Once one, always one.
CREATE TABLE IF NOT EXISTS star (
  user_id   BIGINT      NOT NULL,
  since     DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  announced TINYINT     NOT NULL DEFAULT 0 COMMENT '1: every inbox of a follower knows it; until then posts are pushed too',
  PRIMARY KEY (user_id)
);


-- --------------------------------------------------------------------------------------------- shops

-- shops: a type of shops.
CREATE TABLE IF NOT EXISTS shop_type (
  id   BIGINT       NOT NULL,
  name VARCHAR(64)  NOT NULL,
  icon VARCHAR(512) NULL COMMENT 'a URL',
  sort INT          NOT NULL DEFAULT 0 COMMENT 'the lowest is shown first',
  PRIMARY KEY (id)
);

-- shops: a shop. It may be without a type and without a place: then it is near nobody.
CREATE TABLE IF NOT EXISTS shop (
  id              BIGINT       NOT NULL,
  name            VARCHAR(200) NOT NULL,
  type_id         BIGINT       NULL,
  area            VARCHAR(64)  NULL,
  address         VARCHAR(255) NULL,
  x               DOUBLE       NULL COMMENT 'longitude, degrees; of WGS 84, as y',
  y               DOUBLE       NULL COMMENT 'latitude, degrees',
  images          TEXT         NULL COMMENT 'JSON: at most 9 URLs',
  avg_price_cents INT          NULL COMMENT 'what one person pays',
  open_hours      VARCHAR(200) NULL,
  version         BIGINT       NOT NULL DEFAULT 1 COMMENT 'changes so far',
  created_at      DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  updated_at      DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  deleted_at      DATETIME(6)  NULL,
  PRIMARY KEY (id),
  KEY by_type (type_id, id),
  KEY by_type_and_place (type_id, y, x),
  KEY by_place (y, x)
);


-- --------------------------------------------------------------------------------------- flash sales

-- flash_sales: a voucher that is sold in a rush.
CREATE TABLE IF NOT EXISTS voucher (
  id            BIGINT       NOT NULL,
  shop_id       BIGINT       NOT NULL,
  title         VARCHAR(200) NOT NULL,
  price_cents   BIGINT       NOT NULL,
  initial_stock INT          NOT NULL COMMENT 'units on sale in all',
  stock         INT          NOT NULL COMMENT 'units that no successful order has',
  opens_at      DATETIME(6)  NOT NULL,
  closes_at     DATETIME(6)  NOT NULL,
  generation    BIGINT       NOT NULL DEFAULT 0 COMMENT 'how often its state was loaded into Redis',
  finalized_at  DATETIME(6)  NULL COMMENT 'when it was found closed, with nothing pending and the same stock in Redis',
  created_by    BIGINT       NOT NULL,
  created_at    DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  KEY by_shop (shop_id, id),
  KEY by_finalized (finalized_at, opens_at),
  CONSTRAINT voucher_never_oversold CHECK (stock BETWEEN 0 AND initial_stock)
);

-- flash_sales: an order that was decided: success or failure, whoever inserts first. A buyer has one
-- voucher of a kind: holder_id is the buyer of a success and NULL of a failure.
CREATE TABLE IF NOT EXISTS voucher_order (
  order_id   BIGINT      NOT NULL,
  voucher_id BIGINT      NOT NULL,
  buyer_id   BIGINT      NOT NULL,
  holder_id  BIGINT      NULL COMMENT 'buyer_id of a successful order, NULL of a failed one',
  reason     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of a failure: sold-out, already-bought, timed-out',
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  decided_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (order_id),
  UNIQUE KEY one_per_buyer (voucher_id, holder_id),
  KEY by_buyer (buyer_id, order_id),
  CONSTRAINT success_or_failure CHECK ((holder_id IS NULL) <> (reason IS NULL))
);

-- flash_sales: a reservation that SQS did not take, until it is decided. The key is the identity of an order.
CREATE TABLE IF NOT EXISTS order_outbox (
  order_id   BIGINT      NOT NULL,
  voucher_id BIGINT      NOT NULL,
  buyer_id   BIGINT      NOT NULL,
  generation BIGINT      NOT NULL COMMENT 'generation of the sale in Redis that made the reservation',
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  stored_at  DATETIME(6) NOT NULL,
  PRIMARY KEY (order_id, voucher_id, buyer_id),
  KEY by_voucher (voucher_id, order_id)
);


-- ----------------------------------------------------------------------------------------- check-ins

-- checkins: a day on which a user checked in.
CREATE TABLE IF NOT EXISTS checkin (
  user_id    BIGINT      NOT NULL,
  day        DATE        NOT NULL COMMENT 'where the user was, by their time zone',
  version        BIGINT      NOT NULL COMMENT 'when it was accepted, microseconds since 1970',
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (user_id, day)
);


-- ------------------------------------------------------------------------------------ reconciliation

-- reconciliation: a comparison of all stores, and what it found.
CREATE TABLE IF NOT EXISTS reconciliation (
  id         BIGINT      NOT NULL AUTO_INCREMENT,
  is_open    TINYINT     NULL DEFAULT 1 COMMENT '1 until it has ended, then null: one at a time',
  started_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  ended_at   DATETIME(6) NULL COMMENT 'all was compared and all repairs were asked for',
  targets    BIGINT      NOT NULL DEFAULT 0 COMMENT 'this and what follows are written when it ends',
  relations  BIGINT      NOT NULL DEFAULT 0,
  users      BIGINT      NOT NULL DEFAULT 0,
  cached     BIGINT      NOT NULL DEFAULT 0 COMMENT 'what Redis held: targets, projections, filters',
  differing  BIGINT      NOT NULL DEFAULT 0,
  skipped    BIGINT      NOT NULL DEFAULT 0 COMMENT 'passed over: it changed while it was looked at',
  reason_counts TEXT     NULL COMMENT 'JSON: reason -> how many differences',
  PRIMARY KEY (id),
  UNIQUE KEY one_open (is_open)
);

-- reconciliation: a part of a run, walked through by steps; whoever moves the cursor has done the step.
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

-- reconciliation: what Redis held and did not agree with MySQL at first sight: it is looked at once more.
CREATE TABLE IF NOT EXISTS reconciliation_suspect (
  id          BIGINT       NOT NULL AUTO_INCREMENT,
  run_id      BIGINT       NOT NULL,
  check_kind  VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'state, filter',
  what        VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'like, comments, user, ...',
  target_type VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT       NOT NULL,
  observed    VARCHAR(512) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'what Redis said then; of a filter: whom it denied',
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
  repaired_at DATETIME(6)  NULL COMMENT 'put right, or found to be right by then',
  PRIMARY KEY (id),
  UNIQUE KEY once (run_id, reason, what, target_type, target_id)
);


-- ------------------------------------------------------------------------------- binlog and messages

-- changes: up to where the changes in the binlog of MySQL were told to Redis.
CREATE TABLE IF NOT EXISTS binlog_position (
  name       VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  log_file   VARCHAR(255) NOT NULL,
  log_pos    BIGINT       NOT NULL COMMENT 'the end of a transaction in that file, bytes',
  updated_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (name)
);

-- infra/spill: a message that its queue did not take. The sweeper sends it again.
CREATE TABLE IF NOT EXISTS spilled_message (
  id         BIGINT      NOT NULL AUTO_INCREMENT,
  queue      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  body       MEDIUMTEXT  NOT NULL,
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  KEY by_queue (queue, id)
);
