-- Counters of users and numbers of the rows that they count: (source, user, numbers). A
-- counter changes in the transaction of its rows, so a difference in this snapshot is an error.
--
-- Other contexts append SELECTs of their rows.
-- Source '' is the counter, {totals} in the order of USER_TOTALS; any other source is one count and
-- {zeros}. {received} are the kinds of reactions to content.
-- {within} is BETWEEN first AND last, or IN (ids): each arm reads the index that begins with its
-- user.
SELECT '', user_id, {totals}
FROM user_counter
WHERE user_id {within}

UNION ALL
SELECT 'followers', target_id, COUNT(*){zeros}
FROM reaction FORCE INDEX (PRIMARY)
WHERE target_type = 'user'
  AND target_id {within}
  AND kind = 'follow'
  AND state = 1
GROUP BY target_id

UNION ALL
SELECT 'following', actor_id, COUNT(*){zeros}
FROM reaction FORCE INDEX (by_actor)
WHERE actor_id {within}
  AND kind = 'follow'
  AND state = 1
GROUP BY actor_id

-- Reactions to external targets.
UNION ALL
SELECT CONCAT(r.kind, 's_received'), t.owner_id, COUNT(*){zeros}
FROM external_target AS t FORCE INDEX (by_owner)
STRAIGHT_JOIN reaction AS r FORCE INDEX (PRIMARY)
    ON  r.target_type = t.type
    AND r.target_id = t.id
WHERE t.owner_id {within}
  AND r.kind IN ({received})
  AND r.state = 1
GROUP BY t.owner_id, r.kind
