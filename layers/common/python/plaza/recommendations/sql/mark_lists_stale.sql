-- Marks the lists of the shops whose reviews a page of the log likes or unlikes: each is stale by
-- the newest seq that concerns it.
--
-- begin, end: the page, by seq; every one of its rows is committed
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
