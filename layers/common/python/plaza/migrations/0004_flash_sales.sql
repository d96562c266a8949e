-- Vouchers that are sold in a rush, and who ordered one.

CREATE TABLE IF NOT EXISTS voucher (
  id          BIGINT       NOT NULL,
  shop_id     BIGINT       NOT NULL,
  title       VARCHAR(200) NOT NULL,
  price_cents BIGINT       NOT NULL,
  initial     INT          NOT NULL COMMENT 'units there ever are',
  stock       INT          NOT NULL COMMENT 'units that no order with success has',
  opens_at    DATETIME(6)  NOT NULL,
  closes_at   DATETIME(6)  NOT NULL,
  epoch       BIGINT       NOT NULL DEFAULT 0 COMMENT 'how often its state was made in Redis: the life it is in',
  settled_at  DATETIME(6)  NULL COMMENT 'set: closed, nothing pending, Redis had said the same',
  created_by  BIGINT       NOT NULL,
  created_at  DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  KEY by_shop (shop_id, id),
  KEY by_settling (settled_at, opens_at),
  CONSTRAINT voucher_never_oversold CHECK (stock BETWEEN 0 AND initial)
);

-- An order gets its one row when it is decided: success or failed, whoever inserts first.
-- Somebody has one voucher of a kind: holder is the buyer of a success and NULL of a failure.
CREATE TABLE IF NOT EXISTS voucher_order (
  order_id   BIGINT      NOT NULL,
  voucher_id BIGINT      NOT NULL,
  buyer_id   BIGINT      NOT NULL,
  holder     BIGINT      NULL COMMENT 'buyer_id of a success',
  reason     VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of a failure: sold-out, already-bought, timed-out',
  decided_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (order_id),
  UNIQUE KEY one_each (voucher_id, holder),
  KEY by_buyer (buyer_id, order_id),
  CONSTRAINT success_or_failure CHECK ((holder IS NULL) <> (reason IS NULL))
);
