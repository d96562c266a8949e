-- Reservations that SQS did not take, until they are decided. The key is the identity of an order.

CREATE TABLE IF NOT EXISTS order_outbox (
  order_id   BIGINT      NOT NULL,
  voucher_id BIGINT      NOT NULL,
  buyer_id   BIGINT      NOT NULL,
  epoch      BIGINT      NOT NULL COMMENT 'life of the voucher in Redis that made the reservation',
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  stored_at  DATETIME(6) NOT NULL,
  PRIMARY KEY (order_id, voucher_id, buyer_id),
  KEY by_voucher (voucher_id, order_id)
);
