-- The bell: one index serves lists, marks and pushes, where each new group was written to two. 0.3.0 has no bell.

ALTER TABLE bell_group
  ADD KEY by_state (user_id, is_open, changed, kind, subject_type, subject_id);

-- contract: after version 0.3.0
ALTER TABLE bell_group
  DROP KEY by_change, DROP KEY by_open;
