-- Messages that the queue did not take. They are sent again by the sweeper.

CREATE TABLE IF NOT EXISTS spilled_message (
  id         BIGINT      NOT NULL AUTO_INCREMENT,
  queue      VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  body       MEDIUMTEXT  NOT NULL,
  request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'as in reaction_log',
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (id),
  KEY by_queue (queue, id)
);
