-- Texts of users, their moderation, the feed and recommendations.

-- content: a post, a comment or a review. A deleted row stays, and its reactions stay counted.
CREATE TABLE IF NOT EXISTS content (
  content_type      VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'post, comment, review',
  content_id        BIGINT       NOT NULL,
  author_id         BIGINT       NOT NULL,
  parent_id         BIGINT       NULL COMMENT 'the post of a comment, the shop of a review',
  order_id          BIGINT       NULL COMMENT 'of a review: the used order that it is about; NULL: none is named',
  kind              VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'of a post: note, blog',
  title             VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  body              TEXT         CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  images            TEXT         CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL COMMENT 'JSON: at most 9 URLs',
  score             TINYINT      NULL COMMENT 'of a review: 1 to 5',
  likes             BIGINT       NOT NULL DEFAULT 0 COMMENT 'of a review: its likes, rolled up by recommendations',
  notified_sequence BIGINT       NULL DEFAULT 0 COMMENT 'of a comment: sequence of its notification; NULL: the refresh decides',
  version           BIGINT       NOT NULL DEFAULT 1 COMMENT 'number of changes of the text and of its hidden state',
  request_id        VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at        DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  edited_at         DATETIME(6)  NULL COMMENT 'when the author changed the text last',
  deleted_at        DATETIME(6)  NULL,
  hidden_at         DATETIME(6)  NULL COMMENT 'when a moderator hid it; only its author may read it since',
  hidden_by         BIGINT       NULL COMMENT 'the moderator',
  hidden_by_key     CHAR(16)     CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the key that acted for hidden_by',
  PRIMARY KEY (content_type, content_id),
  KEY by_author (content_type, author_id, deleted_at, created_at, content_id),
  KEY by_parent (content_type, parent_id, deleted_at, created_at, content_id),
  KEY by_likes (content_type, parent_id, deleted_at, likes, content_id)
);

-- content: a delta of a post's comment counter that a refresh adds later, because the counter was locked when
-- the comment was written or deleted. Counter plus deltas = number of comments.
CREATE TABLE IF NOT EXISTS delayed_comment_count (
  post_id    BIGINT  NOT NULL,
  comment_id BIGINT  NOT NULL,
  delta      TINYINT NOT NULL COMMENT '1: comment written, -1: comment deleted',
  PRIMARY KEY (post_id, comment_id, delta)
);

-- content: the review that a user may write once: of an order, or of a shop without an order. The row goes when the
-- review is deleted.
CREATE TABLE IF NOT EXISTS review_slot (
  shop_id   BIGINT NOT NULL,
  author_id BIGINT NOT NULL,
  order_id  BIGINT NOT NULL COMMENT '0: without an order',
  review_id BIGINT NOT NULL,
  PRIMARY KEY (shop_id, author_id, order_id),
  KEY by_review (review_id)
);

-- shop_scores: how many reviews a shop has, and the sum of their scores, of all that are not deleted. The row begins as a
-- count of the reviews: by the first reader or writer that finds none.
CREATE TABLE IF NOT EXISTS shop_counter (
  shop_id       BIGINT NOT NULL,
  reviews_total BIGINT NOT NULL DEFAULT 0,
  score_total   BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (shop_id)
);

-- moderation: a report of a user about content or about another user.
CREATE TABLE IF NOT EXISTS report (
  id              BIGINT        NOT NULL,
  reporter_id     BIGINT        NOT NULL,
  target_type     VARCHAR(16)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id       BIGINT        NOT NULL,
  reason          VARCHAR(16)   CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  details         VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  is_open         TINYINT       NULL DEFAULT 1 COMMENT '1 until it is resolved, then NULL: a reporter has at most one open report of a target',
  outcome         VARCHAR(16)   CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'upheld, dismissed',
  created_at      DATETIME(6)   NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  resolved_at     DATETIME(6)   NULL,
  resolved_by     BIGINT        NULL,
  resolved_by_key CHAR(16)      CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the key that acted for resolved_by',
  PRIMARY KEY (id),
  UNIQUE KEY one_open (reporter_id, target_type, target_id, is_open),
  KEY by_state (is_open, id),
  KEY by_reporter (reporter_id, id)
);

-- feed: an author whose posts are pulled by readers, not pushed to followers. Never deleted.
CREATE TABLE IF NOT EXISTS celebrity (
  user_id   BIGINT      NOT NULL,
  since     DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  announced TINYINT     NOT NULL DEFAULT 0 COMMENT '1: all followers'' inboxes have the celebrity; until then posts are pushed',
  PRIMARY KEY (user_id)
);

-- recommendations: a shop whose list of recommended reviews is stale.
CREATE TABLE IF NOT EXISTS stale_list (
  shop_id BIGINT NOT NULL,
  seq     BIGINT NOT NULL COMMENT 'of the newest event of a review of the shop',
  PRIMARY KEY (shop_id)
);

-- recommendations: the likes of a post in an hour.
CREATE TABLE IF NOT EXISTS post_hour (
  hour    INT    NOT NULL COMMENT 'of the versions: hours since 1970, UTC',
  post_id BIGINT NOT NULL,
  net     BIGINT NOT NULL COMMENT 'likes minus unlikes in the hour',
  PRIMARY KEY (hour, post_id)
);
