-- Shops, flash sales, check-ins, and the binlog's follower.


-- ------------------------------------------------------------------------------------------------ shops

-- shops: a shop type.
CREATE TABLE IF NOT EXISTS shop_type (
  id   BIGINT       NOT NULL,
  name VARCHAR(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  icon VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'a URL',
  sort INT          NOT NULL DEFAULT 0 COMMENT 'types are listed in ascending order',
  PRIMARY KEY (id)
);

-- shops: a shop. The type and the place are optional; without a place no search finds it nearby.
CREATE TABLE IF NOT EXISTS shop (
  id              BIGINT       NOT NULL,
  name            VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  search_name     VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
    AS (LOWER(name)) VIRTUAL COMMENT 'name in lower case; accents, widths and emoji stay',
  type_id         BIGINT       NULL,
  area            VARCHAR(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  address         VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  x               DOUBLE       NULL COMMENT 'longitude, degrees, WGS 84',
  y               DOUBLE       NULL COMMENT 'latitude, degrees, WGS 84',
  images          TEXT         CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'JSON: at most 9 URLs',
  avg_price_cents INT          NULL COMMENT 'per person',
  open_hours      VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  version         BIGINT       NOT NULL DEFAULT 1 COMMENT 'number of changes',
  created_at      DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  updated_at      DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  deleted_at      DATETIME(6)  NULL,
  PRIMARY KEY (id),
  KEY by_type (type_id, id),
  KEY by_type_and_place (type_id, y, x),
  KEY by_place (y, x),
  KEY by_search_name (deleted_at, search_name, id),
  KEY by_type_and_search_name (type_id, deleted_at, search_name, id)
);

-- shops: a user who acts for a shop. Read with each request, so that a removed member can do nothing more.
CREATE TABLE IF NOT EXISTS shop_member (
  shop_id      BIGINT      NOT NULL,
  user_id      BIGINT      NOT NULL,
  role         VARCHAR(8)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'owner, staff',
  appointed_by BIGINT      NOT NULL COMMENT 'an admin, or an owner of the shop',
  created_at   DATETIME(6) NOT NULL,
  PRIMARY KEY (shop_id, user_id),
  KEY by_user (user_id, shop_id)
);


-- ------------------------------------------------------------------------------------------ flash sales

-- flash_sales: a voucher, in a flash sale or an ordinary one.
CREATE TABLE IF NOT EXISTS voucher (
  id            BIGINT       NOT NULL,
  shop_id       BIGINT       NOT NULL,
  kind          VARCHAR(8)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'flash' COMMENT 'flash or ordinary',
  title         VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  price_cents   BIGINT       NOT NULL,
  initial_stock INT          NOT NULL COMMENT 'units on sale',
  stock         INT          NOT NULL COMMENT 'units without a successful order',
  cancelled     INT          NOT NULL DEFAULT 0 COMMENT 'number of its rows in cancelled_order',
  opens_at      DATETIME(6)  NOT NULL,
  closes_at     DATETIME(6)  NOT NULL,
  expires_at    DATETIME(6)  NULL COMMENT 'until when its orders can be used; NULL: without an end',
  generation    BIGINT       NOT NULL DEFAULT 0 COMMENT 'number of times that its state was loaded into Redis',
  finalized_at  DATETIME(6)  NULL COMMENT 'when the closed sale had no pending order and equal stock in Redis',
  created_by    BIGINT       NOT NULL,
  created_at    DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  withdrawn_at  DATETIME(6)  NULL COMMENT 'when an admin withdrew it: no order succeeds since',
  withdrawn_by  BIGINT       NULL COMMENT 'the admin',
  PRIMARY KEY (id),
  KEY by_shop (shop_id, id),
  KEY by_finalized (finalized_at, opens_at),
  KEY by_opening (opens_at, id),
  KEY by_closing (closes_at, id),
  CONSTRAINT voucher_never_oversold CHECK (stock BETWEEN 0 AND initial_stock)
);

-- flash_sales: a decided order; the first insert decides between success and failure. one_per_buyer limits a
-- buyer to one successful order of a voucher, because holder_id is NULL in a failed order. A cancelled order has the
-- reason cancelled. An order is used once, by its code.
CREATE TABLE IF NOT EXISTS voucher_order (
  order_id    BIGINT      NOT NULL,
  voucher_id  BIGINT      NOT NULL,
  buyer_id    BIGINT      NOT NULL,
  holder_id   BIGINT      NULL COMMENT 'buyer_id of a successful order, NULL of a failed order',
  reason      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of a failure: sold-out, already-bought, timed-out',
  code_sha256 BINARY(32)  NULL COMMENT 'of the code that its buyer shows to use it',
  used_at     DATETIME(6) NULL,
  used_by     BIGINT      NULL COMMENT 'user who redeemed the code',
  request_id  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  decided_at  DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (order_id),
  UNIQUE KEY one_per_buyer (voucher_id, holder_id),
  KEY by_buyer (buyer_id, order_id),
  KEY by_code (code_sha256),
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

-- flash_sales: an order that its buyer cancelled. Redis gets all of them when it loads a sale, so that no late
-- message confirms one of them.
CREATE TABLE IF NOT EXISTS cancelled_order (
  voucher_id   BIGINT      NOT NULL,
  order_id     BIGINT      NOT NULL,
  buyer_id     BIGINT      NOT NULL,
  cancelled_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (voucher_id, order_id),
  KEY by_buyer (voucher_id, buyer_id)
);

-- flash_sales: a buyer who waits for a unit of a voucher, until the buyer leaves, orders, or lets an offer pass.
-- seq is the order in which units are offered.
CREATE TABLE IF NOT EXISTS waitlist_entry (
  seq        BIGINT      NOT NULL AUTO_INCREMENT,
  voucher_id BIGINT      NOT NULL,
  buyer_id   BIGINT      NOT NULL,
  joined_at  DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (voucher_id, buyer_id),
  KEY in_order (voucher_id, seq),
  KEY by_seq (seq),
  KEY by_buyer (buyer_id)
);

-- flash_sales: an order that was used, in the list of its shop. voucher_order has the use itself: a row here is
-- written in the same transaction, and stays when the order is archived.
CREATE TABLE IF NOT EXISTS redemption (
  shop_id    BIGINT      NOT NULL,
  used_at    DATETIME(6) NOT NULL,
  order_id   BIGINT      NOT NULL,
  voucher_id BIGINT      NOT NULL,
  used_by    BIGINT      NOT NULL COMMENT 'the member or the admin who redeemed the code',
  PRIMARY KEY (shop_id, used_at, order_id),
  UNIQUE KEY by_order (order_id)
);

-- flash_sales: an order that left voucher_order for the archive in S3, which has all its fields.
CREATE TABLE IF NOT EXISTS archived_order (
  buyer_id   BIGINT      NOT NULL,
  order_id   BIGINT      NOT NULL,
  voucher_id BIGINT      NOT NULL,
  reason     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'as in voucher_order; NULL: a success',
  digest     CHAR(16)    CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'of the object in S3, the end of its name',
  PRIMARY KEY (buyer_id, order_id),
  KEY by_voucher (voucher_id, reason)
);


-- ------------------------------------------------------------------------------------ check-ins, binlog

-- checkins: a day on which a user checked in.
CREATE TABLE IF NOT EXISTS checkin (
  user_id    BIGINT      NOT NULL,
  day        DATE        NOT NULL COMMENT 'local day in the time zone of the user',
  version    BIGINT      NOT NULL COMMENT 'time of acceptance, microseconds since 1970',
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (user_id, day)
);

-- changes: the offset in MySQL's binlog up to which changes were projected to Redis.
CREATE TABLE IF NOT EXISTS binlog_offset (
  name       VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  log_file   VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  log_pos    BIGINT       NOT NULL COMMENT 'the end of a transaction in that file, bytes',
  updated_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (name)
);
