-- The counters of users and the rows that they count, at one instant: (source, user, numbers).
-- Counters move in the transaction of the rows, so what differs here is wrong.
--
-- source '' are the counters, in the order of USER_TOTALS; any other source is one count, and
-- zeros. {within} stands for BETWEEN first AND last, or for IN (ids): each arm reads the index
-- that begins with its user.
SELECT '', user_id, followers_total, following_total, posts_total, likes_received_total,
       collects_received_total
FROM user_counter
WHERE user_id {within}

UNION ALL
-- posts that are not deleted
SELECT 'posts', author_id, COUNT(*), 0, 0, 0, 0
FROM content FORCE INDEX (by_author)
WHERE content_type = 'post'
  AND author_id {within}
  AND deleted_at IS NULL
GROUP BY author_id

UNION ALL
SELECT 'followers', target_id, COUNT(*), 0, 0, 0, 0
FROM reaction FORCE INDEX (by_target)
WHERE target_type = 'user'
  AND target_id {within}
  AND kind = 'follow'
  AND state = 1
GROUP BY target_id

UNION ALL
SELECT 'following', actor_id, COUNT(*), 0, 0, 0, 0
FROM reaction FORCE INDEX (by_actor)
WHERE actor_id {within}
  AND kind = 'follow'
  AND state = 1
GROUP BY actor_id

-- What an author received, deleted content included: that stays theirs. One arm a type: the index
-- of content begins with it.
UNION ALL
SELECT CONCAT(r.kind, 's_received'), c.author_id, COUNT(*), 0, 0, 0, 0
FROM content AS c FORCE INDEX (by_author)
STRAIGHT_JOIN reaction AS r FORCE INDEX (by_target)
    ON  r.target_type = c.content_type
    AND r.target_id = c.content_id
WHERE c.content_type = 'comment'
  AND c.author_id {within}
  AND r.kind IN ('like', 'collect')
  AND r.state = 1
GROUP BY c.author_id, r.kind

UNION ALL
SELECT CONCAT(r.kind, 's_received'), c.author_id, COUNT(*), 0, 0, 0, 0
FROM content AS c FORCE INDEX (by_author)
STRAIGHT_JOIN reaction AS r FORCE INDEX (by_target)
    ON  r.target_type = c.content_type
    AND r.target_id = c.content_id
WHERE c.content_type = 'post'
  AND c.author_id {within}
  AND r.kind IN ('like', 'collect')
  AND r.state = 1
GROUP BY c.author_id, r.kind

UNION ALL
SELECT CONCAT(r.kind, 's_received'), c.author_id, COUNT(*), 0, 0, 0, 0
FROM content AS c FORCE INDEX (by_author)
STRAIGHT_JOIN reaction AS r FORCE INDEX (by_target)
    ON  r.target_type = c.content_type
    AND r.target_id = c.content_id
WHERE c.content_type = 'review'
  AND c.author_id {within}
  AND r.kind IN ('like', 'collect')
  AND r.state = 1
GROUP BY c.author_id, r.kind
