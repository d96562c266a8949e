-- Events of what a key of a server moderates: the key that acted, beside the user for whom. Only an addition.

ALTER TABLE event_log
  ADD COLUMN key_id CHAR(16) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'the key that acted for actor_id',
  ALGORITHM=INSTANT;
