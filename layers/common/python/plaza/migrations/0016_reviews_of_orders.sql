-- Reviews of orders, and the totals of a shop's reviews. Only additions.

ALTER TABLE content
  ADD COLUMN order_id BIGINT NULL COMMENT 'of a review: the used order that it is about; NULL: none is named';

-- content: the review that a user may write once: of an order, or of a shop without an order. Reviews from before this
-- table have none. The row goes when the review is deleted.
CREATE TABLE IF NOT EXISTS review_slot (
  shop_id   BIGINT NOT NULL,
  author_id BIGINT NOT NULL,
  order_id  BIGINT NOT NULL COMMENT '0: without an order',
  review_id BIGINT NOT NULL,
  PRIMARY KEY (shop_id, author_id, order_id),
  KEY by_review (review_id)
);

-- counters: how many reviews a shop has, and the sum of their scores, of all that are not deleted. The row begins as a
-- count of the reviews: by the first reader or writer that finds none.
CREATE TABLE IF NOT EXISTS shop_counter (
  shop_id       BIGINT NOT NULL,
  reviews_total BIGINT NOT NULL DEFAULT 0,
  score_total   BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (shop_id)
);
