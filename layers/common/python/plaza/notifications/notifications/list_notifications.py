"""List notifications: the number of statements and round trips does not grow with the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from plaza.core import counters
from plaza.core.reactions import KINDS, Kind, Target
from plaza.core.reactions import queries as reaction_queries
from plaza.infra.contexts import offers
from plaza.infra.mysql.participants import GroupKey
from plaza.infra.runtime.observability import record_unknown
from plaza.notifications.notifications import list_groups
from plaza.notifications.notifications.listed import MAX_ACTORS, Notification, NotificationPage
from plaza.notifications.notifications.model import GroupCursor, ListedGroup
from plaza.notifications.notifications.subjects import read_subjects
from plaza.people.blocks import queries as block_queries
from plaza.people.users import Card, cards

_COMMENT = "comment"
_READ_ACTORS = MAX_ACTORS + 1  # one may be the recipient


def list_notifications(
    user_id: int, after: GroupCursor | None, limit: int, *, is_displayed: bool
) -> NotificationPage:
    """Return a page of a user's notifications, the newest notification first; see
    ``list_groups``.

    A page may be short: groups of deleted texts, groups without a reaction, and kinds of another
    version are omitted. The user's own reactions and reactions of blocked users are not named. Four
    statements for the groups, two for the subjects, one for the authors of comments, and the round
    trips of totals, actors and cards. Raises ReactionListsBusy, MysqlDown, RedisDown.
    """
    page = list_groups.list_groups(user_id, after, limit, is_displayed=is_displayed)
    keys = [group.key for group in page.groups if _is_known(group.key)]
    subjects = read_subjects(keys)
    live = [key for key in keys if key.subject in subjects]
    totals = _read_totals(live, user_id)
    shown = [g for g in page.groups if g.fresh or totals.get(g.key, 0) > 0]
    shown = [g for g in shown if g.key in totals]
    actors = _read_actors(shown, user_id)
    return NotificationPage(
        page.state,
        [Notification(g, subjects[g.key.subject], totals[g.key], actors[g.key]) for g in shown],
        page.last,
    )


def _is_known(key: GroupKey) -> bool:
    """Return whether this version has the kind of a group; record it if not."""
    if key.kind in KINDS or key.kind == _COMMENT:
        return True
    record_unknown("notification_group.kind", key.kind)
    return False


def _pair_of(key: GroupKey) -> tuple[Kind, Target]:
    return KINDS[key.kind], Target(*key.subject)


def _read_totals(keys: Sequence[GroupKey], user_id: int) -> dict[GroupKey, int]:
    """Return how many users react, without ``user_id``, and how many comments there are."""
    reacted = [key for key in keys if key.kind != _COMMENT]
    counts, _ = reaction_queries.read_counts([_pair_of(key) for key in reacted], user_id)
    totals = {
        key: count.total - count.viewer_state for key, count in zip(reacted, counts, strict=True)
    }
    commented = [key for key in keys if key.kind == _COMMENT]
    comments = counters.read_comments([key.subject_id for key in commented]) if commented else {}
    return totals | {key: comments[key.subject_id] for key in commented}


def _read_actors(groups: Sequence[ListedGroup], user_id: int) -> dict[GroupKey, list[Card]]:
    keys = [group.key for group in groups]
    reacted = [key for key in keys if key.kind in KINDS]
    pairs = [_pair_of(key) for key in reacted]
    listed = reaction_queries.list_newest(pairs, _READ_ACTORS)
    newest: dict[GroupKey, Sequence[int]] = dict(zip(reacted, listed, strict=True))
    for _, notified in offers("notified"):
        of_kind = [key for key in keys if key.kind == notified.KIND]
        actors = notified.read_actors([key.subject_id for key in of_kind], _READ_ACTORS)
        newest |= {key: actors.get(key.subject_id, []) for key in of_kind}
    hidden = {user_id, *(block_queries.read_blocked(user_id) if keys else ())}
    named = {
        key: [actor_id for actor_id in actor_ids if actor_id not in hidden][:MAX_ACTORS]
        for key, actor_ids in newest.items()
    }
    return _with_cards(named)


def _with_cards(named: Mapping[GroupKey, Sequence[int]]) -> dict[GroupKey, list[Card]]:
    by_id = cards.read_cards(actor_id for actor_ids in named.values() for actor_id in actor_ids)
    return {
        key: [by_id[actor_id] for actor_id in actor_ids if actor_id in by_id]
        for key, actor_ids in named.items()
    }
