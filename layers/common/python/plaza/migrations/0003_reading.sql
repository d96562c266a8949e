-- What readers are shown first: votes of reviews, the most liked posts, the feed.
-- Reading the log in the order in which it was written needs an order: seq. Transactions don't
-- commit in that order; the log gate is what makes it safe to read by it (docs/decisions.md).

ALTER TABLE reaction_log
  ADD COLUMN seq BIGINT NOT NULL AUTO_INCREMENT COMMENT 'the order of appending, with gaps',
  ADD KEY by_seq (seq);

-- One row. Who appends to the log holds it shared until the commit; who wants to be sure that
-- everything up to some seq is committed takes it alone for an instant.
CREATE TABLE IF NOT EXISTS log_gate (
  id    TINYINT NOT NULL,
  epoch INT     NOT NULL DEFAULT 0 COMMENT 'raised by one after MySQL was restored to an earlier moment',
  PRIMARY KEY (id)
);

INSERT IGNORE INTO log_gate (id) VALUES (1);

CREATE TABLE IF NOT EXISTS watermark (
  name VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  seq  BIGINT      NOT NULL COMMENT 'reaction_log is rolled up to here, inclusive',
  PRIMARY KEY (name)
);

ALTER TABLE content
  ADD COLUMN votes BIGINT NOT NULL DEFAULT 0 COMMENT 'of a review: its likes, rolled up',
  ADD KEY by_votes (content_type, parent_id, deleted_at, votes, content_id);

CREATE TABLE IF NOT EXISTS stale_list (
  shop_id BIGINT NOT NULL,
  seq     BIGINT NOT NULL COMMENT 'the newest fact that moved the votes of one of its reviews',
  PRIMARY KEY (shop_id)
);

CREATE TABLE IF NOT EXISTS post_hour (
  hour    INT    NOT NULL COMMENT 'hours since 1970, UTC, of the versions counted',
  post_id BIGINT NOT NULL,
  net     BIGINT NOT NULL COMMENT 'likes given in that hour less likes taken back',
  PRIMARY KEY (hour, post_id)
);

ALTER TABLE content_counter
  ADD KEY by_likes (target_type, like_total, target_id);

-- Authors whose posts are read from them rather than pushed to followers. Once one, always one.
CREATE TABLE IF NOT EXISTS star (
  user_id   BIGINT      NOT NULL,
  since     DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  announced TINYINT     NOT NULL DEFAULT 0 COMMENT '1: every inbox of a follower knows it; until then posts are pushed too',
  PRIMARY KEY (user_id)
);
