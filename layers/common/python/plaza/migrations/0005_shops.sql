-- Shops with all that is shown of them, their types, and how far the binlog was followed.
-- An ALTER TABLE is done or not done, never half; when it is done already, the runner goes on.

CREATE TABLE IF NOT EXISTS shop_type (
  id   BIGINT       NOT NULL,
  name VARCHAR(64)  NOT NULL,
  icon VARCHAR(512) NULL COMMENT 'a URL',
  sort INT          NOT NULL DEFAULT 0 COMMENT 'the lowest is shown first',
  PRIMARY KEY (id)
);

-- A shop may be without a type and without a place: then it is near nobody.
ALTER TABLE shop
  ADD COLUMN type_id         BIGINT       NULL,
  ADD COLUMN area            VARCHAR(64)  NULL,
  ADD COLUMN address         VARCHAR(255) NULL,
  ADD COLUMN x               DOUBLE       NULL COMMENT 'longitude, degrees; of WGS 84, as y',
  ADD COLUMN y               DOUBLE       NULL COMMENT 'latitude, degrees',
  ADD COLUMN images          TEXT         NULL COMMENT 'JSON: at most 9 URLs',
  ADD COLUMN avg_price_cents INT          NULL COMMENT 'what one person pays',
  ADD COLUMN open_hours      VARCHAR(200) NULL,
  ADD COLUMN ver             BIGINT       NOT NULL DEFAULT 1 COMMENT 'changes so far',
  ADD COLUMN updated_at      DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  ADD COLUMN deleted_at      DATETIME(6)  NULL,
  ADD KEY by_type (type_id, id),
  ADD KEY by_type_and_place (type_id, y, x),
  ADD KEY by_place (y, x);

-- Up to where the changes that MySQL writes down were told to Redis.
CREATE TABLE IF NOT EXISTS binlog_position (
  name       VARCHAR(32)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  log_file   VARCHAR(255) NOT NULL,
  log_pos    BIGINT       NOT NULL COMMENT 'the end of a transaction in that file, bytes',
  updated_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
  PRIMARY KEY (name)
);
