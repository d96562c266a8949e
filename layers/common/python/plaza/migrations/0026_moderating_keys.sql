-- Moderations by a key of a server: the key that acted, beside the moderator for whom. Only additions.

ALTER TABLE content
  ADD COLUMN hidden_by_key CHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the key that acted for hidden_by',
  ALGORITHM=INSTANT;

ALTER TABLE report
  ADD COLUMN resolved_by_key CHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the key that acted for resolved_by';
