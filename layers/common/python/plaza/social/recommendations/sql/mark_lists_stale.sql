-- Mark the lists of the shops as stale whose reviews have events in a page of the log. The mark is
-- the newest seq of the shop's events.
--
-- begin, end: the page, by seq; all of its rows are committed
INSERT INTO stale_list (shop_id, seq)
SELECT c.parent_id, MAX(liked.seq)
FROM (
    SELECT target_id, seq
    FROM reaction_log FORCE INDEX (by_seq)
    WHERE seq > %(begin)s
      AND seq <= %(end)s
      AND target_type = 'review'
      AND kind = 'like'
) AS liked
STRAIGHT_JOIN content AS c
    ON  c.content_type = 'review'
    AND c.content_id = liked.target_id
WHERE c.parent_id IS NOT NULL
GROUP BY c.parent_id
ORDER BY c.parent_id
ON DUPLICATE KEY UPDATE seq = GREATEST(stale_list.seq, VALUES(seq))
