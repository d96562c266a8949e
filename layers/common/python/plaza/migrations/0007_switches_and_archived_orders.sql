-- Switches of operators, and orders in the archive.

-- switches: one change of the switches by an operator. The row with the highest version has the present switches.
CREATE TABLE IF NOT EXISTS switch_change (
  version    BIGINT       NOT NULL,
  document   TEXT         NOT NULL COMMENT 'JSON: all switches after the change',
  reason     VARCHAR(500) NOT NULL,
  changed_by BIGINT       NOT NULL COMMENT 'operator',
  changed_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (version)
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
