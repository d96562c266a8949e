"""The model of the unread counter: what docs/decisions/0077 requires, without SQL.

MySQL at READ COMMITTED with row locks, consumers that run in parallel and end before their commit,
SQS (at least once, in any order), comments that may not wait, lists with a checkpoint and marks of
two devices, deletions, blocks, erasures, purges, and a projection in Redis that loses its data.

Checked after each commit:

    UNREAD       unread_counter.unread = number of the user's groups with fresh > 0 FRESH
    group.fresh = number of rows that are on and notified after read_sequence FRESH_AFTER
    group.fresh_after = the same after shown_sequence OPEN         a group with fresh > 0 is open
    BOUNDS       notified_sequence <= changed <= sequence; read_sequence <= shown_sequence <=
    sequence OWN          no own reaction or comment notifies

at each mark:

    SHOWN        it reads only what a list had displayed to the device
    MARKED       it reads all of that, whatever notified since
    ONCE         a like that was displayed and read does not notify again

at the end, when all is delivered:

    NOTIFIED         what is on has notified, or had a reason not to: own, blocked, deleted
    GONE         no group of a deleted post has fresh > 0
    DEVICES      all devices show unread_counter.unread; none ever went to a lower sequence

and always PROGRESS: no deadlock. Not in it: SQL, gap locks, pages of a list, repair.
``RULES`` are what the product follows; without any one of them a schedule breaks an invariant.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

RULES = (
    "same_transaction",  # the unread counter is written in the transaction of the rows
    "lock_unread",  # a writer locks the counter before it reads the sequence, until the commit
    "counter_first",  # a deletion takes the counter before the unread counter, as a consumer does
    "by_state",  # a notification is a change of the stored state, not an event
    "keeps_sequence",  # an unlike keeps the row's notified_sequence
    "takes_back",  # an unlike takes its notification back only if it is unread
    "notifies_once",  # a like given again does not notify if the first one was read
    "silence_resets",  # a like that may not notify forgets an unread notification of its row
    "own",  # own reactions do not notify
    "mark_compares",  # a mark reads only what notified up to the displayed sequence
    "mark_open",  # a mark also moves groups whose notifies were all taken back
    "mark_rises",  # a mark raises the sequence
    "new_group_reads",  # a new group begins read up to the unread counter's sequence
    "new_group_shown",  # a new group begins displayed up to the unread counter's sequence
    "deleted_under_lock",  # whether the post is deleted is read under the unread counter's lock
    "pending_comment",  # a comment that cannot lock the counter stays pending for the refresh
    "list_locks",  # a list reads sequence, groups and checkpoint under the counter's lock
    "checkpoint",  # a list stores the sequence at which it displayed a group
    "checkpoint_resets",  # a list sets fresh_after to 0
    "checkpoint_counts",  # a notification raises fresh_after
    "checkpoint_takes_back",  # an unlike lowers fresh_after only after the checkpoint
    "checkpoint_compares",  # a mark uses a checkpoint only up to its own sequence
    "mark_moves_checkpoint",  # a mark raises a checkpoint below its sequence
    "announce",  # a reader leaves a fence before it reads MySQL, and stores only where it still is
    "projection_version",  # Redis keeps the higher sequence
    "device_highest",  # a device keeps the higher sequence
)
USERS = (1, 2, 3, 4)
POSTS = {10: 1, 11: 1, 12: 2, 13: 1, 14: 2}  # post -> author
STEPS = 900
_MAX_TURNS = 20_000

Key = Any
"""A tuple: what a row is, and its primary key."""
GroupKey = tuple[str, int]
"""A kind and its subject."""
Process = Generator[None, None, None]


class Violation(Exception):
    """An invariant does not hold; its name is the first word."""


@dataclass
class UnreadCounter:
    sequence: int = 0
    unread: int = 0


@dataclass
class Group:
    fresh: int
    read: int
    changed: int
    shown: int
    after: int
    is_open: bool


@dataclass
class Row:
    """A reaction: ``unread`` is its notified_sequence."""

    on: bool = False
    version: int = 0
    unread: int = 0


@dataclass
class Comment:
    post: int
    author: int
    deleted: bool = False
    unread: int | None = None


@dataclass(frozen=True)
class Event:
    group: GroupKey
    actor: int
    on: bool
    version: int


@dataclass
class Shown:
    """A displayed list: its sequence, the members of each group, and the groups whose checkpoint
    it stored."""

    sequence: int
    members: dict[GroupKey, set[int]]


@dataclass
class Device:
    user: int
    sequence: int = -1
    unread: int | None = None
    shown: Shown | None = None


class Transaction:
    """Reads see committed data and own writes; a commit publishes the writes."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.writes: dict[Key, Any] = {}
        self.held: list[Key] = []

    def get(self, key: Key) -> Any:
        return copy.copy(self.writes[key] if key in self.writes else self.world.db.get(key))

    def get_unread(self, user: int) -> UnreadCounter:
        unread: UnreadCounter = self.get(("unread", user)) or UnreadCounter()
        return unread

    def put(self, key: Key, value: Any) -> None:
        self.writes[key] = value

    def lock(self, key: Key) -> Process:
        """Wait for a row; use with ``yield from``."""
        while self.world.locks.get(key) not in (None, self):
            self.world.waiting[self] = key
            yield
        self.world.waiting.pop(self, None)
        self._take(key)

    def try_lock(self, key: Key) -> bool:
        if self.world.locks.get(key) not in (None, self):
            return False
        self._take(key)
        return True

    def _take(self, key: Key) -> None:
        self.world.locks[key] = self
        self.held.append(key)

    def end(self, *, commit: bool) -> None:
        if commit:
            self.world.db.update(self.writes)
        for key in self.held:
            if self.world.locks.get(key) is self:
                del self.world.locks[key]
        self.world.waiting.pop(self, None)
        self.writes, self.held = {}, []
        if commit:
            self.world.check(self.name)


@dataclass
class World:
    """One schedule of one seed, by the rules that are in force."""

    seed: int
    rules: Collection[str] = RULES
    db: dict[Key, Any] = field(default_factory=dict)
    locks: dict[Key, Transaction] = field(default_factory=dict)
    waiting: dict[Transaction, Key] = field(default_factory=dict)
    queue: list[Event] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    projection: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    devices: list[Device] = field(default_factory=lambda: [Device(1), Device(1), Device(2)])
    read_likes: set[tuple[GroupKey, int]] = field(default_factory=set)
    suppressed: set[Any] = field(default_factory=set)
    blocks: set[tuple[int, int]] = field(default_factory=set)
    erased: set[int] = field(default_factory=set)
    to_clear: set[int] = field(default_factory=set)
    stale: set[int] = field(default_factory=set)
    displays: dict[tuple[int, GroupKey], int] = field(default_factory=dict)
    stats: Counter[str] = field(default_factory=Counter)
    version: int = 0
    last_comment: int = 100
    is_quiet: bool = False

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        for post in POSTS:
            self.db["post", post] = False  # deleted
        self.mix = self.rng.choice(("likes", "comments", "marks", "all", "faults", "devices"))

    def follows(self, rule: str) -> bool:
        return rule in self.rules

    # ------------------------------------------------------------------------------ invariants

    def members(self, group: GroupKey) -> dict[int, int | None]:
        """Return actor or comment -> notified_sequence of what counts for a group."""
        kind, subject = group
        if kind == "comment":
            return {
                key[1]: comment.unread
                for key, comment in self.db.items()
                if key[0] == "comment" and comment.post == subject and not comment.deleted
            }
        return {
            key[2]: row.unread
            for key, row in self.db.items()
            if key[0] == "row" and key[1] == group and row.on
        }

    def groups(self) -> list[tuple[int, GroupKey, Group]]:
        return [
            (key[1], key[2], group)
            for key, group in self.db.items()
            if key[0] == "group" and group is not None
        ]

    def check(self, name: str) -> None:
        self.stats["commits"] += 1
        unread = dict.fromkeys(USERS, 0)
        for user, key, group in self.groups():
            self._check_group(user, key, group, f"{key} of {user}, by {name}")
            unread[user] += group.fresh > 0
        for user in USERS:
            row = self.db.get(("unread", user)) or UnreadCounter()
            if row.unread != unread[user]:
                raise Violation(f"UNREAD of {user}: {row.unread}, groups {unread[user]}, {name}")
        for key, row in self.db.items():
            if key[0] == "row" and key[2] == owner_of(key[1]) and row.unread:
                raise Violation(f"OWN {key}")

    def _check_group(self, user: int, key: GroupKey, group: Group, name: str) -> None:
        unread = self.db.get(("unread", user)) or UnreadCounter()
        sequences = [sequence or 0 for sequence in self.members(key).values()]
        fresh = sum(sequence > group.read for sequence in sequences)
        after = sum(sequence > group.shown for sequence in sequences)
        if fresh != group.fresh:
            raise Violation(f"FRESH {name}: {group.fresh}, rows {fresh}")
        if after != group.after:
            raise Violation(f"FRESH_AFTER {name}: {group.after}, rows {after}")
        if group.fresh and not group.is_open:
            raise Violation(f"OPEN {name}")
        if max(sequences, default=0) > group.changed:
            raise Violation(f"BOUNDS {name}: rows above changed")
        if not group.read <= group.shown <= unread.sequence or group.changed > unread.sequence:
            raise Violation(f"BOUNDS {name}: {group}, {unread}")

    # ------------------------------------------------------------------------------ the unread
    # counter

    def _new_group(self, unread: UnreadCounter) -> Group:
        read = unread.sequence if self.follows("new_group_reads") else 0
        shown = unread.sequence if self.follows("new_group_shown") else 0
        return Group(0, read, 0, shown, 0, False)

    def _notify(
        self, tx: Transaction, user: int, key: GroupKey, unread: UnreadCounter, at: int
    ) -> None:
        """Add a notification at a sequence. The caller holds the unread counter's lock."""
        group = tx.get(("group", user, key)) or self._new_group(unread)
        unread.unread += group.fresh == 0
        group.fresh += 1
        if self.follows("checkpoint_counts"):
            group.after += 1
        group.changed, group.is_open = at, True
        tx.put(("group", user, key), group)
        self.stats["notifies"] += 1

    def _take_back(
        self, tx: Transaction, user: int, key: GroupKey, unread: UnreadCounter, notified_at: int
    ) -> None:
        group = tx.get(("group", user, key)) or self._new_group(unread)
        group.fresh -= 1
        if notified_at > group.shown or not self.follows("checkpoint_takes_back"):
            group.after -= 1
        unread.unread -= group.fresh == 0
        tx.put(("group", user, key), group)
        self.stats["taken back"] += 1

    def is_deleted(self, key: GroupKey) -> bool:
        return key[0] != "follow" and bool(self.db["post", key[1]])

    def consume(self) -> Process:
        """Save up to three events in one transaction."""
        if not self.queue:
            return
        self.rng.shuffle(self.queue)
        count = self.rng.randint(1, min(3, len(self.queue)))
        batch, self.queue = self.queue[:count], self.queue[count:]
        tx = Transaction(self, "consumer")
        keys = sorted({event.group for event in batch})
        for key in keys:
            yield from tx.lock(("counter", key))
            yield
        changes = self._replay(tx, batch)
        yield
        early = {key: self.is_deleted(key) for key in keys}
        if not self.follows("same_transaction"):
            tx.end(commit=True)
            yield
            if self.rng.random() < 0.2:
                return
        yield
        users = sorted({owner_of(key) for key, _, _, _ in changes})
        for user in users:
            if self.follows("lock_unread"):
                yield from tx.lock(("unread", user))
            yield
        unread_counters = {user: tx.get_unread(user) for user in users}
        if not self.follows("lock_unread"):
            yield
        touched = self._move(tx, changes, unread_counters, early)
        for user in touched:
            unread_counters[user].sequence += 1
            tx.put(("unread", user), unread_counters[user])
        yield
        if self.rng.random() < 0.08 and not self.is_quiet:
            tx.end(commit=False)  # the process ends: SQS delivers again
            self.queue += batch
            return
        tx.end(commit=True)
        yield
        if self.rng.random() < 0.1 and not self.is_quiet:  # it ends after the commit
            self.queue += batch
            self.stale |= set(users)
            return
        if self.rng.random() < 0.1 and not self.is_quiet:
            self.queue += batch
        yield from self.project({owner_of(key) for key in keys})

    def _replay(
        self, tx: Transaction, batch: Iterable[Event]
    ) -> list[tuple[GroupKey, int, bool, bool]]:
        """Store the rows; return (group, actor, state before, state after) of those that change."""
        first: dict[tuple[GroupKey, int], bool] = {}
        last: dict[tuple[GroupKey, int], bool] = {}
        events: list[tuple[GroupKey, int, bool, bool]] = []
        for event in sorted(batch, key=lambda event: event.version):
            row = tx.get(("row", event.group, event.actor)) or Row()
            if event.version <= row.version:
                continue
            events.append((event.group, event.actor, not event.on and row.on, event.on))
            first.setdefault((event.group, event.actor), row.on)
            last[event.group, event.actor] = event.on
            row.on, row.version = event.on, event.version
            tx.put(("row", event.group, event.actor), row)
        if not self.follows("by_state"):
            return events
        return [(*key, first[key], on) for key, on in last.items() if first[key] != on]

    def _move(
        self,
        tx: Transaction,
        changes: Iterable[tuple[GroupKey, int, bool, bool]],
        unread_counters: dict[int, UnreadCounter],
        early: dict[GroupKey, bool],
    ) -> set[int]:
        """Notify and take back; return the users whose unread counters changed."""
        touched = set()
        for key, actor, was, on in changes:
            user = owner_of(key)
            unread, row, group = (
                unread_counters[user],
                tx.get(("row", key, actor)),
                tx.get(("group", user, key)),
            )
            read = group.read if group else unread.sequence
            if on and not was:
                deleted = self.is_deleted(key) if self.follows("deleted_under_lock") else early[key]
                is_own = user == actor and self.follows("own")
                if is_own or (user, actor) in self.blocks or deleted:
                    self.suppressed.add((key, actor))
                    if row.unread > read and self.follows("silence_resets"):
                        row.unread = 0
                        tx.put(("row", key, actor), row)
                    continue
                if self.follows("notifies_once") and 0 < row.unread <= read:
                    self.stats["silent"] += 1
                    continue
                if (key, actor) in self.read_likes:
                    raise Violation(f"ONCE {actor} notifies {key} again")
                row.unread = unread.sequence + 1
                self._notify(tx, user, key, unread, row.unread)
                tx.put(("row", key, actor), row)
                touched.add(user)
            elif was and not on:
                if row.unread and (row.unread > read or not self.follows("takes_back")):
                    self._take_back(tx, user, key, unread, row.unread)
                    touched.add(user)
                if not self.follows("keeps_sequence"):
                    row.unread = 0
                    tx.put(("row", key, actor), row)
        return touched

    def project(self, users: Iterable[int]) -> Process:
        for user in sorted(users):
            unread = self.db.get(("unread", user)) or UnreadCounter()
            yield
            stored = self.projection.get(user)
            if stored is None:
                continue  # no reader has announced itself: writers create none
            if unread.sequence >= stored[0] or not self.follows("projection_version"):
                self.projection[user] = unread.sequence, unread.unread

    # ------------------------------------------------------------------------------ comments

    def comment(self) -> Process:
        """Write a comment, which may not wait for the unread counter."""
        post, author = self.rng.choice(list(POSTS)), self.rng.choice(USERS)
        if self.db["post", post] or author in self.erased:
            return
        tx = Transaction(self, "comment")
        self.last_comment += 1
        number = self.last_comment
        if not tx.try_lock(("post-share", post, number)):
            return
        if self.locks.get(("post", post)):  # it is being deleted
            tx.end(commit=False)
            return
        comment = Comment(post, author)
        tx.put(("comment", number), comment)
        yield
        if self.db["post", post]:
            tx.end(commit=False)
            return
        user = POSTS[post]
        if user == author or (user, author) in self.blocks:
            comment.unread = 0
            self.suppressed.add(number)
        elif tx.try_lock(("unread", user)):
            self._notify_comment(tx, number, user)
        elif not self.follows("pending_comment"):
            comment.unread = 0
        else:
            self.stats["pending"] += 1
        yield
        if self.rng.random() < 0.05 and not self.is_quiet:
            tx.end(commit=False)
            return
        tx.end(commit=True)
        yield from self.project([user])

    def _notify_comment(self, tx: Transaction, number: int, user: int) -> None:
        comment, unread = tx.get(("comment", number)), tx.get_unread(user)
        comment.unread = 0
        if not self.db["post", comment.post]:
            comment.unread = unread.sequence + 1
            self._notify(tx, user, ("comment", comment.post), unread, comment.unread)
            unread.sequence += 1
        tx.put(("comment", number), comment)
        tx.put(("unread", user), unread)

    def refresh(self) -> Process:
        """The announced refresh: notify pending comments, clear groups of deleted posts,
        project."""
        pending = [
            key
            for key, comment in self.db.items()
            if key[0] == "comment" and comment.unread is None and not comment.deleted
        ]
        for key in pending:
            user = POSTS[self.db[key].post]
            tx = Transaction(self, "refresh")
            yield from tx.lock(key)
            yield from tx.lock(("unread", user))
            yield
            comment = tx.get(key)
            if comment.unread is None and not comment.deleted:
                self._notify_comment(tx, key[1], user)
            tx.end(commit=True)
            yield from self.project([user])
        for post in sorted(self.to_clear):
            yield from self.clear(post)
        stale, self.stale = self.stale, set()
        yield from self.project(stale)

    def clear(self, post: int) -> Process:
        """After the deletion of a post, read its groups."""
        user = POSTS[post]
        tx = Transaction(self, "clear")
        yield from tx.lock(("unread", user))
        self.to_clear.discard(post)
        yield
        unread, moved = tx.get_unread(user), False
        for kind in ("like", "comment"):
            key = "group", user, (kind, post)
            group = tx.get(key)
            if group and (group.fresh or group.is_open):
                unread.unread -= group.fresh > 0
                group.fresh = group.after = 0
                group.is_open, group.read, group.shown = False, unread.sequence, unread.sequence
                tx.put(key, group)
                self.displays.pop((user, (kind, post)), None)
                moved = True
        if moved:
            unread.sequence += 1
            tx.put(("unread", user), unread)
        tx.end(commit=True)
        yield from self.project([user])

    def delete_comment(self) -> Process:
        live = [
            key for key, comment in self.db.items() if key[0] == "comment" and not comment.deleted
        ]
        if not live:
            return
        key = self.rng.choice(live)
        tx = Transaction(self, "delete comment")
        yield from tx.lock(key)
        comment = tx.get(key)
        if comment.deleted:
            tx.end(commit=False)
            return
        user, group_key = POSTS[comment.post], ("comment", comment.post)
        counter = "counter", ("like", comment.post)
        if self.follows("counter_first"):
            tx.try_lock(counter)  # else its delta is delayed
        if comment.unread != 0:  # it notified or is pending: decide under the unread counter's lock
            yield from tx.lock(("unread", user))
            yield
            comment, group, unread = tx.get(key), tx.get(("group", user, group_key)), None
            if comment.unread and group and comment.unread > group.read:
                unread = tx.get_unread(user)
                self._take_back(tx, user, group_key, unread, comment.unread)
                unread.sequence += 1
                tx.put(("unread", user), unread)
        if not self.follows("counter_first"):
            yield from tx.lock(counter)
        comment.deleted = True
        tx.put(key, comment)
        tx.end(commit=True)
        yield from self.project([user])

    def delete_post(self) -> Process:
        post = self.rng.choice(list(POSTS))
        if self.db["post", post]:
            return
        tx = Transaction(self, "delete post")
        yield from tx.lock(("post", post))
        while any(key[:2] == ("post-share", post) for key in self.locks):
            yield
        tx.put(("post", post), True)
        yield
        tx.end(commit=True)
        self.to_clear.add(post)
        yield  # it may end here: the announced refresh clears
        if self.rng.random() < 0.7:
            yield from self.clear(post)

    # ------------------------------------------------------------------------------ readers

    def list_groups(self) -> Process:
        """Display all groups of a user, with a checkpoint; sometimes by a reader that may not
        write, such as a HEAD."""
        device = self.rng.choice(self.devices)
        user, writes = device.user, self.rng.random() < 0.9
        tx = Transaction(self, "list")
        if self.follows("list_locks") and writes:
            yield from tx.lock(("unread", user))
        own = [key for recipient, key, _ in self.groups() if recipient == user]
        displayed = {key: set(self.members(key)) for key in own}
        if not self.follows("list_locks"):
            yield
        sequence = tx.get_unread(user).sequence
        for key in displayed if writes else ():
            group = tx.get(("group", user, key))
            if group is None:
                continue
            self.displays[user, key] = sequence
            if self.follows("checkpoint"):
                group.shown = sequence
                if self.follows("checkpoint_resets"):
                    group.after = 0
                tx.put(("group", user, key), group)
        tx.end(commit=True)
        device.shown = Shown(sequence, displayed)
        yield

    def mark(self) -> Process:
        device = self.rng.choice(self.devices)
        if device.shown is None:
            return
        displayed, user = device.shown, device.user
        yield
        tx = Transaction(self, "mark")
        yield from tx.lock(("unread", user))
        yield
        unread, moved, before = tx.get_unread(user), False, {}
        for recipient, key, group in self.groups():
            if recipient == user:
                before[key] = group
                self._note_read_likes(key, group, displayed)
                moved |= self._mark_group(tx, user, key, copy.copy(group), displayed, unread)
        if moved:
            if self.follows("mark_rises"):
                unread.sequence += 1
            tx.put(("unread", user), unread)
            self.stats["marks"] += 1
        for key, group in before.items():
            after: Group = tx.get(("group", user, key))
            self._check_marked(user, displayed, after, key)
            if after.shown != group.shown:
                self.displays[user, key] = after.shown
        tx.end(commit=True)
        yield from self.project([user])

    def _mark_group(
        self,
        tx: Transaction,
        user: int,
        key: GroupKey,
        group: Group,
        displayed: Shown,
        unread: UnreadCounter,
    ) -> bool:
        at, was_fresh, was_read = displayed.sequence, group.fresh > 0, group.read
        if not group.is_open or (group.fresh == 0 and not self.follows("mark_open")):
            return False
        is_displayed = group.shown <= at or not self.follows("checkpoint_compares")
        if group.changed <= at or not self.follows("mark_compares"):
            group.read = max(at, group.changed)
            if self.follows("mark_moves_checkpoint"):
                group.shown = max(group.shown, group.read)
            group.fresh, group.after, group.is_open = 0, 0, False
        elif group.read < group.shown and is_displayed:
            group.read, group.fresh = group.shown, group.after
            self.stats["partial marks"] += 1
        else:
            return False
        members = self.members(key)
        read = {m for m, sequence in members.items() if was_read < (sequence or 0) <= group.read}
        if hidden := read - displayed.members.get(key, set()):
            raise Violation(f"SHOWN {hidden} of {key} become read, not displayed at {at}")
        unread.unread += (group.fresh > 0) - was_fresh
        tx.put(("group", user, key), group)
        return True

    def _note_read_likes(self, key: GroupKey, group: Group, displayed: Shown) -> None:
        """Note the likes that this mark reads, also those that were taken back since the list."""
        at = displayed.sequence
        if key[0] != "comment" and (group.changed <= at or group.shown == at):
            self.read_likes |= {
                (key, actor)
                for actor in displayed.members.get(key, set())
                if 0 < (self.db.get(("row", key, actor)) or Row()).unread <= at
            }

    def _check_marked(self, user: int, displayed: Shown, group: Group, key: GroupKey) -> None:
        """After a mark of the last display, what notified up to it is read."""
        if self.displays.get((user, key)) == displayed.sequence:
            late = sum((p or 0) > displayed.sequence for p in self.members(key).values())
            if group.fresh != late:
                raise Violation(
                    f"MARKED {key}: {group}, {late} notified since {displayed.sequence}"
                )

    def poll(self, device: Device) -> Process:
        read = self.projection.get(device.user)
        if read is None or read[0] < 0:
            if self.follows("announce"):
                self.projection.setdefault(device.user, (-1, None))  # a fence: writers update it
                yield
            unread = self.db.get(("unread", device.user)) or UnreadCounter()
            read = unread.sequence, unread.unread
            yield
            stored = self.projection.get(device.user)
            # Without a fence Redis lost it, and a writer may have passed: nothing is stored.
            if stored is None and self.follows("announce"):
                pass
            elif stored is None or stored[0] <= read[0]:
                self.projection[device.user] = read
        yield  # the answer is on its way
        if read[0] > device.sequence or not self.follows("device_highest"):
            if read[0] < device.sequence:
                raise Violation(f"DEVICES one went from {device.sequence} to {read[0]}")
            device.sequence, device.unread = read

    def purge(self) -> Process:
        """Delete read groups."""
        for user, key, group in self.groups():
            if group.is_open:
                continue
            tx = Transaction(self, "purge")
            yield from tx.lock(("unread", user))
            newest = tx.get(("group", user, key))
            if newest is not None and not newest.is_open and newest.fresh == 0:
                tx.put(("group", user, key), None)
                self.displays.pop((user, key), None)
            tx.end(commit=True)

    # ------------------------------------------------------------------------------ a schedule

    def send_event(self) -> None:
        keys = [("like", post) for post in POSTS] + [("follow", user) for user in (1, 2)]
        key = self.rng.choice(keys)
        actor = self.rng.choice([user for user in USERS if user not in self.erased])
        if key == ("follow", actor) or (self.is_deleted(key) and self.rng.random() < 0.9):
            return
        self.version += 1
        self.queue.append(Event(key, actor, self.rng.random() < 0.6, self.version))

    def erase(self) -> None:
        """Take back all reactions of a user."""
        user = 4
        self.erased.add(user)
        for key, row in self.db.items():
            if key[0] == "row" and key[2] == user and row.on:
                self.version += 1
                self.queue.append(Event(key[1], user, False, self.version))

    def step(self) -> None:
        draw = self.rng.random()
        weights = {"likes": 0.5, "comments": 0.25, "faults": 0.3, "devices": 0.12}
        weight = weights.get(self.mix, 0.35)
        if draw < weight * 0.3:
            self.send_event()
        elif draw < weight * 0.6:
            self._start(self.consume())
        elif draw < weight * 0.6 + 0.10:
            self._start(self._choose_request())
        elif draw < weight * 0.6 + (0.16 if self.mix == "faults" else 0.115):
            self._trouble()
        elif self.processes:
            self._advance(self.rng.choice(self.processes))
        else:
            self._check_projections()
        self._find_deadlock()

    def _check_projections(self) -> None:
        """While no process runs, Redis has the unread counters of MySQL, or none."""
        for user, read in self.projection.items():
            unread = self.db.get(("unread", user)) or UnreadCounter()
            if user not in self.stale and read[0] >= 0 and read != (unread.sequence, unread.unread):
                raise Violation(f"DEVICES Redis stays at {read}, MySQL has {unread}")

    def _choose_request(self) -> Process:
        names = ["list", "mark", "poll", "comment", "delete", "refresh"]
        names += {
            "likes": ["list", "mark", "poll"],
            "comments": ["comment", "comment", "delete", "refresh", "list", "mark"],
            "marks": ["list", "mark", "list", "mark", "poll"],
            "devices": ["poll"] * 12,
        }.get(self.mix, [])
        requests: dict[str, Callable[[], Process]] = {
            "list": self.list_groups,
            "mark": self.mark,
            "poll": lambda: self.poll(self.rng.choice(self.devices)),
            "comment": self.comment,
            "delete": self.delete_comment,
            "refresh": self.refresh,
        }
        return requests[self.rng.choice(names)]()

    def _trouble(self) -> None:
        names = ["post", "erase", "block", "flush", "purge", "flush"]
        match self.rng.choice(["flush"] * 6 if self.mix == "devices" else names):
            case "post":
                self._start(self.delete_post())
            case "erase":
                self.erase()
            case "block":
                self.blocks ^= {(self.rng.choice(USERS), self.rng.choice(USERS))}
            case "flush":
                self.projection = {}
            case "purge":
                self._start(self.purge())

    def _start(self, process: Process) -> None:
        if len(self.processes) < 8:
            self.processes.append(process)

    def _advance(self, process: Process) -> None:
        try:
            next(process)
        except StopIteration:
            self.processes.remove(process)

    def _find_deadlock(self) -> None:
        for first in self.waiting:
            seen: set[Transaction] = set()
            at: Transaction | None = first
            while at in self.waiting and at not in seen:
                seen.add(at)
                at = self.locks.get(self.waiting[at])
            if at is not None and at in seen and at in self.waiting:
                raise Violation("PROGRESS deadlock")

    def run(self) -> Counter[str]:
        """Play the schedule; return counts of what happened. Raises Violation."""
        for _ in range(STEPS):
            self.step()
        self._settle()
        return self.stats

    def _settle(self) -> None:
        self.is_quiet = True
        self._drain()
        while self.queue:
            if self.rng.random() < 0.3:
                self.projection = {}
            self.processes += [self.consume(), self.consume(), self.mark()]
            self.processes += map(self.poll, self.devices)
            self._drain()
        self.processes += [self.refresh(), *map(self.poll, self.devices)]
        self._drain()
        self.processes += map(self.poll, self.devices)
        self._drain()
        self.check("end")
        self._check_notified()
        for device in self.devices:
            unread = self.db.get(("unread", device.user)) or UnreadCounter()
            if device.unread != unread.unread:
                raise Violation(f"DEVICES shows {device.unread} @{device.sequence}, not {unread}")

    def _check_notified(self) -> None:
        for key, row in self.db.items():
            if key[0] == "row" and row.on and not row.unread and key[1:] not in self.suppressed:
                raise Violation(f"NOTIFIED {key} never notified")
            if key[0] == "comment" and not row.deleted and row.unread is None:
                raise Violation(f"NOTIFIED {key} is pending")
            if key[0] == "comment" and not row.deleted and row.unread == 0:
                is_own = row.author == POSTS[row.post]
                if not is_own and key[1] not in self.suppressed and not self.db["post", row.post]:
                    raise Violation(f"NOTIFIED {key} never notified")
        for _, key, group in self.groups():
            if group.fresh and self.is_deleted(key):
                raise Violation(f"GONE {key}")

    def _drain(self) -> None:
        for _ in range(_MAX_TURNS):
            if not self.processes:
                return
            self._advance(self.rng.choice(self.processes))
            self._find_deadlock()
        raise Violation("PROGRESS no end")


def owner_of(key: GroupKey) -> int:
    """Return the recipient of a group."""
    kind, subject = key
    return subject if kind == "follow" else POSTS[subject]


def find(rules: Collection[str], seeds: Iterable[int]) -> tuple[int, str] | None:
    """Return (seed, violation) of the first schedule that breaks an invariant, None without one."""
    for seed in seeds:
        try:
            World(seed, rules).run()
        except Violation as violation:
            return seed, str(violation)
    return None
