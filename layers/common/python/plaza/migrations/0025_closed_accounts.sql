-- Accounts that their users closed, which a sign-in opens again for seven days. Only additions.

-- users: a user who closed the account: the rows of user, user_phone and user_identity, which are deleted
-- meanwhile. It ends with the erasure, or when the texts of a reopened account are shown again.
CREATE TABLE IF NOT EXISTS closed_user (
  user_id     BIGINT       NOT NULL,
  nickname    VARCHAR(64)  CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  avatar      VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  role        VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  time_zone   VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  latest_day  DATE         NULL,
  excused_from  DATE     NULL,
  excused_until DATE     NULL,
  version     BIGINT       NOT NULL,
  created_at  DATETIME(6)  NOT NULL,
  phone       VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NULL,
  issuer      VARCHAR(200) CHARACTER SET ascii COLLATE ascii_bin NULL,
  subject     VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NULL,
  closed_at   DATETIME(6)  NOT NULL COMMENT 'its texts are hidden since then, by their author',
  reopened_at DATETIME(6)  NULL COMMENT 'its texts are shown again',
  settled_at  DATETIME(6)  NULL COMMENT 'when nothing was left to hide',
  PRIMARY KEY (user_id),
  KEY by_phone (phone),
  KEY by_identity (issuer, subject),
  KEY by_state (settled_at, user_id)
);

-- requested_at is the moment from which on passes erase: of a closed account, seven days later. The version before
-- reads it in this sense.
ALTER TABLE erasure
  ADD COLUMN account_closed_at DATETIME(6) NULL COMMENT 'when the user asked; NULL: at requested_at';
