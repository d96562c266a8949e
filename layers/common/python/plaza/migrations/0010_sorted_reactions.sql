-- Reactions to large targets in the order of time, in a table of their own: once all functions have this version, an
-- operator drops the index by_target of reaction (docs/operations.md, Dropping an index). Only additions.

-- reactions: the rows of reaction of each target and kind with more than 2,000 active actors, in the order in which they
-- are listed. Complete for a target whose counter says so; see docs/decisions/0072-sort-reactions-to-large-targets-only.md.
CREATE TABLE IF NOT EXISTS sorted_reaction (
  target_type VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target_id   BIGINT      NOT NULL,
  kind        VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state       TINYINT     NOT NULL,
  version     BIGINT      NOT NULL COMMENT 'microseconds since 1970',
  actor_id    BIGINT      NOT NULL,
  PRIMARY KEY (target_type, target_id, kind, state, version, actor_id)
);

ALTER TABLE content_counter
  ADD COLUMN like_sorted    BIGINT NULL COMMENT 'like_version up to which sorted_reaction has the likes; negative: it is being filled; NULL: it has none',
  ADD COLUMN collect_sorted BIGINT NULL,
  ADD COLUMN follow_sorted  BIGINT NULL;
