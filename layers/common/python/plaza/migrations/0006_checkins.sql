-- On which days people checked in, and what decides which day it is for them.
-- An ALTER TABLE is done or not done, never half; when it is done already, the runner goes on.

CREATE TABLE IF NOT EXISTS checkin (
  user_id    BIGINT      NOT NULL,
  day        DATE        NOT NULL COMMENT 'where the user was, by their time zone',
  ver        BIGINT      NOT NULL COMMENT 'when it was accepted, microseconds since 1970',
  created_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (user_id, day)
);

ALTER TABLE user
  ADD COLUMN time_zone  VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'UTC' COMMENT 'IANA name',
  ADD COLUMN latest_day DATE NULL COMMENT 'the day it was when the time zone was last changed: no earlier one comes again';
