"""The unread counters of users as a client sees them, compared with a file."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from local.load.api_reader import ApiReader

Subject = tuple[str, str, int]
"""A kind, the type and the id of what was reacted to."""
Total = Callable[[Subject, int], int | None]
"""Of a subject and its recipient how many others reacted by the file; None: not in the file."""


class SeenUnread(NamedTuple):
    """The badge of a user before and after the list of all groups was read."""

    before: Mapping[str, Any]
    groups: Sequence[Mapping[str, Any]]
    after: Mapping[str, Any]


async def fetch_unread(api: ApiReader, user_ids: Iterable[int]) -> dict[int, SeenUnread]:
    """Return the unread counter of each of ``user_ids``, who have a session. Raises
    CommandError."""

    async def fetch(user_id: int) -> SeenUnread:
        return SeenUnread(
            await api.fetch("/users/me/notifications/unread", user_id=user_id),
            await api.read_list("/users/me/notifications", user_id),
            await api.fetch("/users/me/notifications/unread", user_id=user_id),
        )

    return await api.fetch_each("unread counters", user_ids, fetch)


def find_wrong_unread(unread_counters: Mapping[int, SeenUnread], expected: Total) -> list[str]:
    """Return where badges differ from their groups, or groups from the file."""
    differences = []
    for user_id, (before, groups, after) in unread_counters.items():
        new = sum(group["fresh"] > 0 for group in groups)
        if not before["unread"] == after["unread"] == new or before["at"] != after["at"]:
            differences.append(
                f"the unread counter of user {user_id} has {before} and then {after},"
                f" {new} groups are new"
            )
        subjects = [_subject_of(group) for group in groups]
        if len(set(subjects)) < len(subjects):
            differences.append(f"the unread counter of user {user_id} has a group twice")
        for subject, group in zip(subjects, groups, strict=True):
            fresh, total, by_file = group["fresh"], group["total"], expected(subject, user_id)
            if by_file is not None and not fresh <= total == by_file:
                differences.append(
                    f"the unread counter of user {user_id} has {fresh} new of {total} of {subject},"
                    f" {by_file} by the file"
                )
    return differences


def _subject_of(group: Mapping[str, Any]) -> Subject:
    return group["kind"], group["subject"]["type"], int(group["subject"]["id"])


def describe(unread_counters: Mapping[int, SeenUnread]) -> str:
    """Return what was compared."""
    groups = [group for counter in unread_counters.values() for group in counter.groups]
    return (
        f"the unread counters of {len(unread_counters)} users: {len(groups):,} groups, "
        f"{sum(group['fresh'] for group in groups):,} new"
    )
