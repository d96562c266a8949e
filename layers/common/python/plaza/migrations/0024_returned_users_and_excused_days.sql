-- Closed erasures are looked at once a day, in the order of next_pass_at; and the days that a move to the east took from
-- a user. Only additions: the version before neither reads nor writes the columns.

ALTER TABLE erasure
  ADD KEY by_pass (next_pass_at);

ALTER TABLE user
  ADD COLUMN excused_from  DATE NULL COMMENT 'first day that the last move to the east cut short or skipped',
  ADD COLUMN excused_until DATE NULL COMMENT 'last one of them: the day before the first one in the new time zone',
  ALGORITHM=INSTANT;
