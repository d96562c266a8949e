-- Which request made a row: the id that the client was answered with, and that the logs have.
-- NULL: nobody knows, as of what the sweeper or a recovery sent again. No index: the way from an id
-- to its row is through the log, which names the primary key (docs/operations.md).

ALTER TABLE reaction_log
  ADD COLUMN request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL;

ALTER TABLE voucher_order
  ADD COLUMN request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL;

ALTER TABLE checkin
  ADD COLUMN request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL;

ALTER TABLE content
  ADD COLUMN request_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL;
