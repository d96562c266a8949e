"""The rules of events: repeated and in any order they give the same rows and totals."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.core import counters
from plaza.core.counters.model import USER_COLUMNS
from plaza.core.reactions.kinds import KINDS
from plaza.core.reactions.model import (
    MAX_ID,
    MAX_ROWS,
    MAX_VERSION_US,
    PROTOCOL,
    CounterChange,
    LogEntry,
    ReactionEvent,
    ReactionKey,
    ReactionRow,
    Target,
    group_events,
    replay,
)
from plaza.core.reactions.queues import REACTIONS
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.runtime.errors import Unavailable, UnknownProtocol

POST, COMMENT = Target("post", 1), Target("comment", 1)


def key(actor: int, target: Target = POST, kind: str = "like") -> ReactionKey:
    return ReactionKey(*target, kind, actor)


def event(
    actor: int, on: bool, version_us: int, target: Target = POST, kind: str = "like"
) -> ReactionEvent:
    return ReactionEvent(key(actor, target, kind), on, version_us)


def save(
    before: dict[ReactionKey, ReactionRow], events: Iterable[ReactionEvent]
) -> tuple[dict[ReactionKey, ReactionRow], dict[tuple[str, int, str], int]]:
    """Return the rows after a batch and the delta of each total, as the consumer computes them."""
    changes = replay(before, group_events(events))
    deltas = {
        (*change.target, change.kind.name): change.delta for change in changes if change.is_new
    }
    return before | rows_of(changes), deltas


def rows_of(changes: Iterable[CounterChange]) -> dict[ReactionKey, ReactionRow]:
    """Return the rows that are written."""
    return {
        ReactionKey(*change.target, change.kind.name, actor_id): ReactionRow(on, version_us)
        for change in changes
        for actor_id, version_us, on, _, is_newer in change.actors
        if is_newer
    }


def entries_of(changes: Iterable[CounterChange]) -> list[LogEntry]:
    return [entry for change in changes for entry in change.entries]


# ---------------------------------------------------------------- one batch


def test_a_like_adds_one_to_the_total() -> None:
    assert save({}, [event(7, True, 10)]) == ({key(7): ReactionRow(True, 10)}, {(*POST, "like"): 1})


def test_an_unlike_subtracts_one_from_the_total() -> None:
    _, deltas = save({key(7): ReactionRow(True, 10)}, [event(7, False, 20)])
    assert deltas == {(*POST, "like"): -1}


def test_like_unlike_like_in_one_batch_is_one_like() -> None:
    events = [event(7, True, 10), event(7, False, 20), event(7, True, 30)]
    assert save({}, events) == ({key(7): ReactionRow(True, 30)}, {(*POST, "like"): 1})


def test_like_unlike_in_one_batch_leaves_a_row_and_no_count() -> None:
    rows, deltas = save({}, [event(7, True, 10), event(7, False, 20)])
    assert rows == {key(7): ReactionRow(False, 20)}
    assert deltas == {(*POST, "like"): 0}


def test_a_duplicate_counts_once_in_a_batch_and_in_the_next() -> None:
    rows, deltas = save({}, [event(7, True, 10)] * 3)
    assert deltas == {(*POST, "like"): 1}
    assert save(rows, [event(7, True, 10)]) == (rows, {})


def test_a_late_like_does_not_undo_a_newer_unlike() -> None:
    before = {key(7): ReactionRow(False, 20)}
    assert save(before, [event(7, True, 10)]) == (before, {})


def test_an_event_of_the_same_version_changes_nothing() -> None:
    before = {key(7): ReactionRow(True, 20)}
    assert save(before, [event(7, False, 20)]) == (before, {})


def test_a_repeated_like_raises_the_version_and_not_the_total() -> None:
    assert save({key(7): ReactionRow(True, 10)}, [event(7, True, 20)]) == (
        {key(7): ReactionRow(True, 20)},
        {(*POST, "like"): 0},
    )


def test_targets_and_kinds_have_separate_totals() -> None:
    _, deltas = save(
        {key(9): ReactionRow(True, 1)},
        [
            event(7, True, 10),
            event(8, True, 10),
            event(9, False, 10),
            event(7, True, 10, COMMENT),
            event(7, True, 10, POST, "collect"),
        ],
    )
    assert deltas == {(*POST, "like"): 1, (*COMMENT, "like"): 1, (*POST, "collect"): 1}


def test_changes_that_cancel_out_have_a_delta_of_0() -> None:
    """Given a like and an unlike: the total stays and the rows change."""
    _, deltas = save({key(8): ReactionRow(True, 1)}, [event(7, True, 10), event(8, False, 10)])
    assert deltas == {(*POST, "like"): 0}


def test_rows_and_log_are_sorted_by_primary_key() -> None:
    events = [event(a, True, 1, t) for a in (9, 10, 2) for t in (POST, COMMENT, Target("post", 10))]
    changes = replay({}, group_events(events))
    assert [event.key for event, _, _ in entries_of(changes)] == sorted(f.key for f in events)
    assert list(rows_of(changes)) == sorted(f.key for f in events)


def test_a_target_with_more_actors_than_a_script_applies_is_split() -> None:
    actors = range(1, MAX_ROWS * 2 + 2)
    events = [
        event(actor, on, version) for actor in actors for on, version in ((True, 1), (False, 2))
    ]
    changes = replay({key(actor): ReactionRow(True, 0) for actor in actors}, group_events(events))
    assert [len(change.actors) for change in changes] == [MAX_ROWS, MAX_ROWS, 1]
    assert [len(change.entries) for change in changes] == [MAX_ROWS * 2, MAX_ROWS * 2, 2]
    assert [change.delta for change in changes] == [-MAX_ROWS, -MAX_ROWS, -1]


def test_the_change_of_an_actor_is_that_of_all_its_events() -> None:
    [change] = replay(
        {key(8): ReactionRow(True, 5)},
        group_events(
            [event(7, True, 10), event(7, False, 20), event(8, False, 10), event(9, True, 10)]
        ),
    )
    assert [tuple(actor) for actor in change.actors] == [
        (7, 20, False, 0, True),
        (8, 10, False, -1, True),
        (9, 10, True, 1, True),
    ]


# ---------------------------------------------------------------- the change of each event


def log_of(
    before: dict[ReactionKey, ReactionRow], *events: ReactionEvent
) -> list[tuple[int, int, int]]:
    """Return (actor, version, change) of the log of one batch."""
    entries = entries_of(replay(before, group_events(events)))
    return [(e.key.actor_id, version_us, change) for e, version_us, change in entries]


def test_each_event_is_logged_once_with_its_change() -> None:
    like, unlike, again = event(7, True, 10), event(7, False, 20), event(7, True, 30)
    logged = [(7, 10, 1), (7, 20, -1), (7, 30, 1)]
    assert log_of({}, again, like, unlike, like) == logged
    assert log_of({key(7): ReactionRow(True, 5)}, like, unlike) == [(7, 10, 0), (7, 20, -1)]


def test_an_event_that_is_not_newer_than_the_row_has_a_change_of_0() -> None:
    before = {key(7): ReactionRow(False, 20)}
    assert log_of(before, event(7, True, 10), event(7, True, 20)) == [(7, 10, 0), (7, 20, 0)]


def test_one_of_two_events_with_the_same_version_is_logged() -> None:
    assert log_of({}, event(7, True, 10), event(7, False, 10)) == [(7, 10, 1)]


def test_a_provisional_event_gets_its_version_from_the_queue() -> None:
    provisional = ReactionEvent(key(7), False, None, sent_ms=1_795_169_730_123)
    assert provisional.effective_version_us == 1_795_169_730_123_999
    before_it, after_it = 1_795_169_730_123_998, 1_795_169_730_124_000
    assert log_of({}, provisional, event(7, True, before_it), event(7, True, after_it)) == [
        (7, before_it, 1),
        (7, provisional.effective_version_us, -1),
        (7, after_it, 1),
    ]
    assert entries_of(replay({}, group_events([provisional])))[0] == (
        provisional,
        provisional.effective_version_us,
        0,
    )


@pytest.mark.parametrize(
    ("sent_ms", "deadline_ms", "version_us"),
    [(2_000, 3_000, 2_000_999), (3_000, 3_000, 3_000_999), (9_000, 3_000, 3_000_999)],
)
def test_a_provisional_event_is_not_ordered_after_its_deadline(
    sent_ms: int, deadline_ms: int, version_us: int
) -> None:
    late = ReactionEvent(key(7), True, None, sent_ms=sent_ms, deadline_ms=deadline_ms)
    assert late.effective_version_us == version_us


def test_the_version_of_the_gate_takes_precedence_over_the_queue() -> None:
    assert ReactionEvent(key(7), True, 10, sent_ms=99).effective_version_us == 10


def test_an_event_without_version_and_sent_time_is_invalid() -> None:
    with pytest.raises(InvalidMessage):
        _ = ReactionEvent(key(7), True, None).effective_version_us


# ---------------------------------------------------------------- any order, any number of times

some_events = st.lists(
    st.builds(
        event,
        actor=st.integers(1, 3),
        on=st.booleans(),
        version_us=st.integers(1, 30),
        target=st.sampled_from([POST, COMMENT]),
    ),
    max_size=25,
    unique_by=lambda f: (f.key, f.version_us),
)


@given(events=some_events, data=st.data())
def test_repeated_events_in_any_order_have_the_same_result(
    events: list[ReactionEvent], data: st.DataObject
) -> None:
    repeated = events + (
        data.draw(st.lists(st.sampled_from(events), max_size=15)) if events else []
    )
    shuffled = data.draw(st.permutations(repeated))
    rows: dict[ReactionKey, ReactionRow] = {}
    logged: dict[tuple[ReactionKey, int], int] = {}
    totals: dict[tuple[str, int, str], int] = defaultdict(int)
    for batch in batches(shuffled, data.draw(st.integers(1, 10))):
        # As INSERT IGNORE: each once.
        for saved, version_us, change in entries_of(replay(rows, group_events(batch))):
            logged.setdefault((saved.key, version_us), change)
        rows, deltas = save(rows, batch)
        for counted, by in deltas.items():
            totals[counted] += by

    last = {f.key: f for f in sorted(events, key=lambda f: f.effective_version_us)}
    assert rows == {k: ReactionRow(f.on, f.effective_version_us) for k, f in last.items()}
    for target in (POST, COMMENT):
        on = sum(row.on for k, row in rows.items() if k.target == target)
        assert totals[*target, "like"] == on
        assert sum(change for (k, _), change in logged.items() if k.target == target) == on


def batches(events: list[ReactionEvent], size: int) -> Iterator[list[ReactionEvent]]:
    for start in range(0, len(events), size):
        yield events[start : start + size]


# ---------------------------------------------------------------- on the queue

valid_events = st.builds(
    ReactionEvent,
    key=st.sampled_from(sorted(KINDS.values(), key=lambda k: k.name)).flatmap(
        lambda kind: st.builds(
            ReactionKey,
            st.sampled_from(sorted(kind.targets)),
            st.integers(1, MAX_ID),
            st.just(kind.name),
            st.integers(1, MAX_ID),
        )
    ),
    on=st.booleans(),
    version_us=st.none() | st.integers(1, MAX_VERSION_US),
    deadline_ms=st.none() | st.integers(1, MAX_VERSION_US // 1000),
)


@given(valid_events)
def test_an_event_is_parsed_as_encoded(original: ReactionEvent) -> None:
    assert REACTIONS.decode(REACTIONS.encode(original)) == original


GOOD: dict[str, Any] = json.loads(REACTIONS.encode(event(7, True, 10)))


def test_an_event_without_a_version_is_provisional() -> None:
    assert REACTIONS.decode(json.dumps(GOOD | {"version": None})).version_us is None


@pytest.mark.parametrize("protocol", [1, PROTOCOL + 1, 0, -1, 10**30])
def test_an_event_of_another_protocol_raises_unknown_protocol(protocol: int) -> None:
    """Another version of Plaza, during a deployment or after a rollback, may parse it."""
    with pytest.raises(UnknownProtocol, match=f"protocol {protocol}") as refusal:
        REACTIONS.decode(json.dumps({"protocol": protocol, "whatever": "it has"}))
    assert isinstance(refusal.value, Unavailable)


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "7",
        '"like"',
        "[]",
        "{}",
        "{",
        "NaN",
        "[" * 100_000,
        '{"a":' * 100_000,
        "1" * 5_000,
        json.dumps(GOOD) + "x",
        json.dumps([GOOD]),
    ],
    ids=lambda body: body[:12] or "empty",
)
def test_a_body_that_is_no_event_is_invalid(body: str) -> None:
    with pytest.raises(InvalidMessage):
        REACTIONS.decode(body)


@pytest.mark.parametrize("name", GOOD)
def test_an_event_without_a_field_is_invalid(name: str) -> None:
    with pytest.raises(InvalidMessage, match=name):
        REACTIONS.decode(json.dumps({k: v for k, v in GOOD.items() if k != name}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "follow"),
        ("kind", "Like"),
        ("kind", None),
        ("kind", ["like"]),
        ("kind", {"like": 1}),
        ("target_type", "user"),
        ("target_type", "post' OR 1"),
        ("target_type", None),
        ("target_type", ["post"]),
        ("target_id", 0),
        ("target_id", -1),
        ("target_id", MAX_ID + 1),
        ("target_id", 10**400),
        ("target_id", "11"),
        ("target_id", 11.0),
        ("target_id", True),
        ("target_id", float("nan")),
        ("actor_id", 0),
        ("actor_id", MAX_ID + 1),
        ("actor_id", None),
        ("actor_id", [7]),
        ("state", 2),
        ("state", -1),
        ("state", True),
        ("state", "1"),
        ("state", None),
        ("version", 0),
        ("version", 2**53),
        ("version", 1e15),
        ("version", float("inf")),
        ("version", True),
        ("version", "1"),
        ("deadline", 0),
        ("deadline", 2**53),
        ("deadline", "1"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_event_with_an_invalid_value_is_invalid(name: str, value: object) -> None:
    with pytest.raises(InvalidMessage):
        REACTIONS.decode(json.dumps(GOOD | {name: value}))


def test_a_collect_of_a_user_is_invalid() -> None:
    with pytest.raises(InvalidMessage, match="a user takes no collect"):
        REACTIONS.decode(json.dumps(GOOD | {"kind": "collect", "target_type": "user"}))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["like", "collect", "post", "comment", 0, 1, MAX_ID, 2**53]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(GOOD, json_values)))
def test_a_random_body_is_a_valid_event_or_invalid(fields: dict[str, Any]) -> None:
    body = json.dumps(GOOD | fields)
    try:
        reactions = REACTIONS.decode(body)
    except (InvalidMessage, UnknownProtocol):
        return
    assert reactions.key.target_type in KINDS[reactions.key.kind].targets
    assert 1 <= reactions.key.target_id <= MAX_ID
    assert 1 <= reactions.key.actor_id <= MAX_ID
    assert reactions.version_us is None or 1 <= reactions.version_us <= MAX_VERSION_US
    assert REACTIONS.decode(REACTIONS.encode(reactions)) == reactions


@given(st.text(max_size=60) | json_values.map(json.dumps))
def test_a_random_text_is_invalid(body: str) -> None:
    with pytest.raises(InvalidMessage):
        REACTIONS.decode(body)


# ---------------------------------------------------------------- the registry of kinds


def test_every_kind_has_a_name_and_a_column_of_its_own() -> None:
    assert {name: kind.name for name, kind in KINDS.items()} == {name: name for name in KINDS}
    assert counters.COMMENT not in KINDS, "the counter of comments is another row"
    assert len({kind.received for kind in KINDS.values()}) == len(KINDS)


def test_the_columns_of_kinds_are_columns_of_the_counters_of_users() -> None:
    of_users = {column for k in KINDS.values() for column in (k.received, k.given) if column}
    assert of_users < set(USER_COLUMNS)


def test_a_kind_ranks_targets_that_it_takes() -> None:
    assert {name: kind.ranked for name, kind in KINDS.items() if kind.ranked} == {"like": {"post"}}
    assert all(kind.ranked <= kind.targets for kind in KINDS.values())


@pytest.mark.parametrize("body", [{"kind": "follow"}, {"target_type": "user"}])
def test_users_take_follows_only_and_follows_are_of_users_only(
    body: dict[str, str],
) -> None:
    with pytest.raises(InvalidMessage, match="takes no"):
        REACTIONS.decode(json.dumps(GOOD | body))
    assert REACTIONS.decode(
        json.dumps(GOOD | {"kind": "follow", "target_type": "user"})
    ).key == ReactionKey("user", GOOD["target_id"], "follow", GOOD["actor_id"])
