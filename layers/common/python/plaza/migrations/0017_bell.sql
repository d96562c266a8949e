-- The bell: exact notifications. Only additions: reactions and comments from before never ring, and functions of the
-- version before insert rows that do not.

-- bell: the bell of a user. Its row stays when the user is erased, so that positions never repeat.
CREATE TABLE IF NOT EXISTS bell (
  user_id  BIGINT NOT NULL,
  position BIGINT NOT NULL DEFAULT 0 COMMENT 'commits that changed this bell',
  unread   INT    NOT NULL DEFAULT 0 COMMENT 'groups with fresh > 0',
  blocking INT    NOT NULL DEFAULT 0 COMMENT 'rows of user_block of this blocker',
  PRIMARY KEY (user_id)
);

-- bell: what rang for a user about one subject. Its writers lock the row of bell.
CREATE TABLE IF NOT EXISTS bell_group (
  user_id        BIGINT      NOT NULL,
  kind           VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'like, comment, follow',
  subject_type   VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  subject_id     BIGINT      NOT NULL,
  fresh          BIGINT      NOT NULL COMMENT 'what counts now and rang after read_position',
  read_position  BIGINT      NOT NULL COMMENT 'of a new row: the position of the bell before it',
  changed        BIGINT      NOT NULL COMMENT 'position of the last ring',
  shown_position BIGINT      NOT NULL COMMENT 'position at which the list last displayed it, or read_position',
  fresh_after    BIGINT      NOT NULL COMMENT 'of fresh, what rang after shown_position',
  is_open        TINYINT     NOT NULL COMMENT '1: it rang after read_position, even if all of it was taken back',
  changed_at     DATETIME(6) NOT NULL,
  changed_on     DATE        NOT NULL COMMENT 'day of changed_at, so that a ring changes the index of ages once a day',
  PRIMARY KEY (user_id, kind, subject_type, subject_id),
  KEY by_change (user_id, changed, kind, subject_type, subject_id),
  KEY by_open (user_id, is_open),
  KEY by_age (is_open, changed_on)
);

ALTER TABLE reaction
  ADD COLUMN bell_position BIGINT NOT NULL DEFAULT 0 COMMENT 'position of its ring in the bell of the owner; 0: none',
  ALGORITHM=INSTANT;

ALTER TABLE content
  ADD COLUMN bell_position BIGINT NULL DEFAULT 0 COMMENT 'of a comment: position of its ring; NULL: the refresh decides';
