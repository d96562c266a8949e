-- Members of shops, and the orders that they redeemed. Only additions.

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
