-- What operators read: samples of gauges, and sales by their state. Only additions.

-- operations: the gauges of a minute, for plots. Deleted after a day.
CREATE TABLE IF NOT EXISTS gauge_sample (
  minute INT        NOT NULL COMMENT 'minutes since 1970, UTC',
  gauges MEDIUMTEXT NOT NULL COMMENT 'JSON: name of a gauge -> value',
  PRIMARY KEY (minute)
);

ALTER TABLE voucher
  ADD KEY by_opening (opens_at, id),
  ADD KEY by_closing (closes_at, id);
