-- Copy the like counters of the reviews with events in a page of the log to their likes.
--
-- INSERT ... SELECT does not lock the rows that it reads, as UPDATE would, and so cannot deadlock
-- with consumers that store reactions. Reviews are written in the order of their ids.
--
-- begin, end: the page, by seq; all of its rows are committed
INSERT INTO content (content_type, content_id, author_id, likes)
SELECT c.content_type, c.content_id, c.author_id, k.total
FROM (
    SELECT DISTINCT target_id
    FROM reaction_log FORCE INDEX (by_seq)
    WHERE seq > %(begin)s
      AND seq <= %(end)s
      AND target_type = 'review'
      AND kind = 'like'
) AS liked
STRAIGHT_JOIN content AS c
    ON  c.content_type = 'review'
    AND c.content_id = liked.target_id
STRAIGHT_JOIN counter AS k
    ON  k.target_type = 'review'
    AND k.target_id = c.content_id
    AND k.kind = 'like'
WHERE c.likes <> k.total
ORDER BY c.content_id
ON DUPLICATE KEY UPDATE likes = VALUES(likes)
