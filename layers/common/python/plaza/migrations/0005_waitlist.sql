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
