-- What is still to be added to the comments of a post: its counter was locked when a comment was written
-- or deleted. Counter plus these = the comments there are.

CREATE TABLE IF NOT EXISTS comment_change (
  post_id    BIGINT  NOT NULL,
  comment_id BIGINT  NOT NULL,
  step       TINYINT NOT NULL COMMENT '1: it was written, -1: it was deleted',
  PRIMARY KEY (post_id, comment_id, step)
);
