-- Vouchers that are used, cancelled and expire. Each statement can be repeated.

-- flash_sales: kinds and expiry of vouchers, and how many of their orders were cancelled.
ALTER TABLE voucher
  ADD COLUMN kind VARCHAR(8) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'flash' COMMENT 'flash or ordinary',
  ADD COLUMN expires_at DATETIME(6) NULL COMMENT 'until when its orders can be used; NULL: without an end',
  ADD COLUMN cancelled INT NOT NULL DEFAULT 0 COMMENT 'number of its rows in cancelled_order';

-- flash_sales: the use of an order, once, by its code. A cancelled order has the reason cancelled.
ALTER TABLE voucher_order
  ADD COLUMN code_sha256 BINARY(32) NULL COMMENT 'of the code that its buyer shows to use it',
  ADD COLUMN used_at DATETIME(6) NULL,
  ADD COLUMN used_by BIGINT NULL COMMENT 'user who redeemed the code',
  ADD KEY by_code (code_sha256);

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
