-- Texts of users and reactions to them, which counters of users count: (total, user, number). Appended
-- to the statement of core that counts users.
--
-- {zeros} fills the columns of that statement. {received} are the kinds of reactions to content.
-- {within} is BETWEEN first AND last, or IN (ids).
SELECT 'posts', author_id, COUNT(*){zeros}
FROM content FORCE INDEX (by_author)
WHERE content_type = 'post'
  AND author_id {within}
  AND deleted_at IS NULL
GROUP BY author_id

-- Reactions to an author's content, deleted content included, which counters keep. One arm for
-- each type: the index of content begins with the type.
UNION ALL
SELECT CONCAT(r.kind, 's_received'), c.author_id, COUNT(*){zeros}
FROM content AS c FORCE INDEX (by_author)
STRAIGHT_JOIN reaction AS r FORCE INDEX (PRIMARY)
    ON  r.target_type = c.content_type
    AND r.target_id = c.content_id
WHERE c.content_type = 'comment'
  AND c.author_id {within}
  AND r.kind IN ({received})
  AND r.state = 1
GROUP BY c.author_id, r.kind

UNION ALL
SELECT CONCAT(r.kind, 's_received'), c.author_id, COUNT(*){zeros}
FROM content AS c FORCE INDEX (by_author)
STRAIGHT_JOIN reaction AS r FORCE INDEX (PRIMARY)
    ON  r.target_type = c.content_type
    AND r.target_id = c.content_id
WHERE c.content_type = 'post'
  AND c.author_id {within}
  AND r.kind IN ({received})
  AND r.state = 1
GROUP BY c.author_id, r.kind

UNION ALL
SELECT CONCAT(r.kind, 's_received'), c.author_id, COUNT(*){zeros}
FROM content AS c FORCE INDEX (by_author)
STRAIGHT_JOIN reaction AS r FORCE INDEX (PRIMARY)
    ON  r.target_type = c.content_type
    AND r.target_id = c.content_id
WHERE c.content_type = 'review'
  AND c.author_id {within}
  AND r.kind IN ({received})
  AND r.state = 1
GROUP BY c.author_id, r.kind
