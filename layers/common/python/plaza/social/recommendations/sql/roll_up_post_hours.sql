-- Add the changes of posts' likes in a page of the log to the hours of their versions.
--
-- begin, end: the page, by seq; all of its rows are committed
-- hour_us:    3600000000; the version of a reaction is its time in microseconds
-- first_hour: earlier hours are skipped
INSERT INTO post_hour (hour, post_id, net)
SELECT version DIV %(hour_us)s AS hour, target_id, SUM(change_by)
FROM reaction_log FORCE INDEX (by_seq)
WHERE seq > %(begin)s
  AND seq <= %(end)s
  AND target_type = 'post'
  AND kind = 'like'
  AND version >= %(first_hour)s * %(hour_us)s
GROUP BY hour, target_id
HAVING SUM(change_by) <> 0
ORDER BY hour, target_id
ON DUPLICATE KEY UPDATE net = post_hour.net + VALUES(net)
