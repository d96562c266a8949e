-- Erasures of accounts. Each table's comment names its owner and, after a colon, what a row is.


-- accounts: the erasure of a user, requested by the user. The row stays, as the record that it was done.
CREATE TABLE IF NOT EXISTS erasure (
  user_id      BIGINT      NOT NULL,
  requested_at DATETIME(6) NOT NULL,
  next_pass_at DATETIME(6) NOT NULL,
  erased_at    DATETIME(6) NULL COMMENT 'when a pass found nothing more',
  closed_at    DATETIME(6) NULL COMMENT 'when no message from before can be on its way any more: the last pass',
  PRIMARY KEY (user_id),
  KEY by_next_pass (closed_at, next_pass_at)
);
