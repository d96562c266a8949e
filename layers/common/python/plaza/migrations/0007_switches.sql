-- switches: one change of the switches by an operator. The row with the highest version has the present switches.
CREATE TABLE IF NOT EXISTS switch_change (
  version    BIGINT       NOT NULL,
  document   TEXT         NOT NULL COMMENT 'JSON: all switches after the change',
  reason     VARCHAR(500) NOT NULL,
  changed_by BIGINT       NOT NULL COMMENT 'operator',
  changed_at DATETIME(6)  NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  PRIMARY KEY (version)
);
