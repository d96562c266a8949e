"""The pure middle of the storing transaction, without a store: what a batch changes, in any batches
and any order, is what its newest events say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from plaza.core.counters import CounterKey, TargetCounter
from plaza.core.reactions import persist
from plaza.core.reactions.kinds import KINDS
from plaza.core.reactions.model import ReactionEvent, ReactionKey, ReactionRow, group_events
from plaza.core.reactions.persist import Decision, Stored
from plaza.infra.mysql.participants import GroupKey, Move

EPOCH = 5 << 40
ACTORS, POSTS = range(1, 5), (11, 12)
OWNERS = {("post", 11): 1, ("post", 12): 99} | {("user", user): user for user in ACTORS}

keys = st.one_of(
    st.builds(
        ReactionKey,
        st.just("post"),
        st.sampled_from(POSTS),
        st.sampled_from(["like", "collect"]),
        st.sampled_from(ACTORS),
    ),
    st.builds(
        ReactionKey,
        st.just("user"),
        st.sampled_from(ACTORS),
        st.just("follow"),
        st.sampled_from(ACTORS),
    ),
)
events = st.builds(ReactionEvent, keys, st.booleans(), st.integers(1, 9))
batches = st.lists(st.lists(events, min_size=1, max_size=12), min_size=1, max_size=5)


class Tables:
    """What MySQL has, as decisions change it."""

    def __init__(self) -> None:
        self.rows: dict[ReactionKey, ReactionRow] = {}
        self.totals: defaultdict[CounterKey, TargetCounter] = defaultdict(TargetCounter)
        self.users: defaultdict[int, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))

    def read(self, batch: Sequence[ReactionEvent]) -> Stored:
        return Stored(
            EPOCH,
            OWNERS,
            {event.key[:3]: self.totals[event.key[:3]] for event in batch},
            {event.key: self.rows[event.key] for event in batch if event.key in self.rows},
        )

    def write(self, decision: Decision) -> None:
        for change in decision.changes:
            for actor_id, version_us, on, _, is_newer in change.actors:
                if is_newer:
                    key = ReactionKey(*change.target, change.kind.name, actor_id)
                    self.rows[key] = ReactionRow(on, version_us)
        for counted, by in decision.of_targets.items():
            before = self.totals[counted]
            self.totals[counted] = TargetCounter(
                before.total + by.total, before.version + by.version
            )
        for (user_id,), deltas in decision.of_users.items():
            for column, delta in deltas.items():
                self.users[user_id][column] += delta


def decide(tables: Tables, batch: Sequence[ReactionEvent]) -> Decision:
    return persist.decide(tables.read(batch), group_events(batch))


@given(batches)
def test_rows_and_totals_are_those_of_the_newest_events(
    batches: list[list[ReactionEvent]],
) -> None:
    tables, newest = Tables(), dict[ReactionKey, tuple[int, bool]]()
    for batch in batches:
        tables.write(decide(tables, batch))
        for event in batch:
            assert event.version_us is not None
            if event.version_us > newest.get(event.key, (0, False))[0]:
                newest[event.key] = event.version_us, event.on
    assert {key: (row.version_us, row.on) for key, row in tables.rows.items()} == newest
    for target in {key.target for key in newest}:
        for kind in KINDS.values():
            on = sum(row.on for k, row in tables.rows.items() if k[:3] == (*target, kind.name))
            assert tables.totals[*target, kind.name].total == on
    for user in (*ACTORS, 99):
        for kind in KINDS.values():
            received = sum(
                row.on
                for k, row in tables.rows.items()
                if k.kind == kind.name and OWNERS[k.target] == user
            )
            if kind.received:
                assert tables.users[user][kind.received] == received
            if kind.given:
                given_ = sum(
                    row.on
                    for k, row in tables.rows.items()
                    if k.kind == kind.name and k.actor_id == user
                )
                assert tables.users[user][kind.given] == given_


@given(batches)
def test_commits_have_the_versions_and_totals_of_the_counters_after_them(
    batches: list[list[ReactionEvent]],
) -> None:
    tables = Tables()
    for batch in batches:
        before = tables.read(batch).counters
        decision = decide(tables, batch)
        tables.write(decision)
        last = {(c.target, c.kind.name): c for c in decision.commits}
        for (target, kind), commit in last.items():
            key = (*target, kind)
            after = tables.totals[key]
            assert commit.total == after.total
            assert commit.db_version == EPOCH + after.version
            raised = sum(
                c.is_new for c in decision.changes if (c.target, c.kind.name) == (target, kind)
            )
            assert after.version - before[key].version == raised


@given(batches)
def test_only_likes_of_posts_are_ranked(batches: list[list[ReactionEvent]]) -> None:
    tables = Tables()
    for batch in batches:
        decision = decide(tables, batch)
        tables.write(decision)
        for (target_type, _, kind), delta in decision.of_targets.items():
            assert delta.is_ranked == ((target_type, kind) == ("post", "like"))


@given(batches)
def test_a_repeated_batch_changes_nothing_and_logs_each_event(
    batches: list[list[ReactionEvent]],
) -> None:
    tables = Tables()
    for batch in batches:
        tables.write(decide(tables, batch))
        again = decide(tables, batch)
        assert not again.is_new
        assert (again.of_targets, again.of_users) == ({}, {})
        logged = {(e.key, e.version_us) for c in again.changes for e, _, _ in c.entries}
        assert logged == {(event.key, event.version_us) for event in batch}
        assert len(again.log.split("),(")) == len(logged)


@given(batches)
def test_rows_of_kinds_that_notify_and_turn_move(batches: list[list[ReactionEvent]]) -> None:
    tables = Tables()
    for batch in batches:
        stored = tables.read(batch)
        decision = persist.decide(stored, group_events(batch))
        moves = persist.find_moves(stored, decision.changes)
        moved = {
            ReactionKey(*c.target, c.kind.name, a.actor_id): a.on
            for c in decision.changes
            for a in c.actors
            if a.change and c.kind.notifies
        }
        assert {key: move.on for key, move in moves.items()} == moved
        tables.write(decision)


def test_a_move_has_its_owner_and_the_sequence_of_its_row() -> None:
    key = ReactionKey("post", 12, "like", 1)
    rows = {key: ReactionRow(True, 1, 6)}
    stored = Stored(EPOCH, OWNERS, {key[:3]: TargetCounter(1)}, rows)
    decision = persist.decide(stored, group_events([ReactionEvent(key, False, 2)]))
    moves = persist.find_moves(stored, decision.changes)
    assert moves == {key: Move(GroupKey(99, "like", "post", 12), 1, False, 6)}


def test_rows_that_do_not_move_keep_their_sequences() -> None:
    moved, unmoved = (ReactionKey("post", 12, "like", actor) for actor in (1, 2))
    rows = {unmoved: ReactionRow(True, 1, 7)}
    stored = Stored(EPOCH, OWNERS, {}, rows)
    assert persist.sequences_after(stored, [moved], [8]) == {moved: 8, unmoved: 7}
    assert persist.sequences_after(stored, [moved], None) is None


def test_owners_of_reactions_that_notify_are_refreshed() -> None:
    keys = [
        ReactionKey("post", 12, "collect", 1),
        ReactionKey("post", 11, "like", 2),
        ReactionKey("post", 13, "like", 2),
        ReactionKey("user", 3, "follow", 2),
    ]
    assert persist.find_notified(OWNERS, keys) == {1, 3}
