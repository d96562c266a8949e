-- Shops by name, the same on each server: the default collation of utf8mb4 differs between MySQL and MariaDB, and takes
-- each emoji for any other one. Only additions: the server computes the column, also of rows that the version before
-- writes, which goes on reading by_name and by_type_and_name. A virtual column is added at once; its keys read the table.

ALTER TABLE shop
  ADD COLUMN search_name VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin
    AS (LOWER(name COLLATE utf8mb4_bin)) VIRTUAL COMMENT 'name in lower case; accents, widths and emoji stay';

ALTER TABLE shop
  ADD KEY by_search_name (deleted_at, search_name, id),
  ADD KEY by_type_and_search_name (type_id, deleted_at, search_name, id);
