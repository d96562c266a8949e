-- Brings the votes of the reviews that a page of the log likes or unlikes to their counters.
--
-- INSERT rather than UPDATE: what an INSERT ... SELECT reads it does not lock, so it can't get into
-- a deadlock with those who save reactions. Reviews are touched in the order of their ids.
--
-- begin, end: the page, by seq; every one of its rows is committed
INSERT INTO content (content_type, content_id, author_id, votes)
SELECT c.content_type, c.content_id, c.author_id, k.like_total
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
STRAIGHT_JOIN content_counter AS k
    ON  k.target_type = 'review'
    AND k.target_id = c.content_id
WHERE c.votes <> k.like_total
ORDER BY c.content_id
ON DUPLICATE KEY UPDATE votes = VALUES(votes)
