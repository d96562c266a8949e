"""The model of reconciliation: unsaved reactions are no drift, and damage is repaired.

A run is one seed: PLAZA_MODEL_RUNS runs, starting after PLAZA_MODEL_SEED. A failure shows its
seed and can be repeated with it. Results are compared with the audit of ``local``, which shares no
code with the reconciliation.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import pytest
from pymysql.cursors import Cursor

from local.audit import stores
from local.audit.compare import compare
from local.audit.stores import read_mysql_state, read_redis_state
from plaza.core import counters
from plaza.core.reactions import Kind, Target, redis_keys
from plaza.infra.derived.comparisons import MIN_STEPS
from plaza.infra.mysql import mysql
from plaza.infra.redis import masters, redis
from plaza.infra.runtime.errors import Unavailable
from plaza.operate.reconciliation import cycles, orchestrator, repair
from plaza.operate.reconciliation.queues import COMPARISONS, REPAIRS
from tests.model import reactions_model
from tests.model.order import Pair, Screens
from tests.model.reactions_model import ACTORS, AUTHORS, MAX_STEPS, TROUBLES, Request, Run
from tests.model.test_reactions_model import FIRST, RUNS
from tests.support.plaza import World
from tests.support.servers import IS_CLUSTER

MAX_ALIVE = len(ACTORS) + 8
AUDIT_EVERY = 200  # steps
ALL_STEPS = MIN_STEPS


class UnorderedScreens(Screens):
    """Screens of a run with damage, which changes totals without their tokens."""

    def see_reply(self, pair: Pair, total: int, at: str | None, *, is_of_master: bool) -> None:
        pass

    def see_answer(self, pair: Pair, total: int | None, at: str | None) -> None:
        pass

    def see_state(self, pair: Pair, losses: int) -> None:
        pass


@dataclass
class Reconciled(Run):
    """A run with reconciliation, and with damage at the probability ``damages`` per step."""

    damages: float = 0.0

    @property
    def is_decided_by_gate(self) -> bool:
        return super().is_decided_by_gate and not self.damages

    def _check_result(self, actor: int, requests: Sequence[Request]) -> None:
        if not self.damages:
            super()._check_result(actor, requests)

    def comment(self) -> None:
        """Add a comment with its row, which reconciliation counts."""
        posts = [target for _, target in self.targets if target.type == "post"]
        if not posts:
            return
        self.comments += 1
        comment_id, post_id = self.seed * 100_000 + self.comments, posts[0].id

        def write(cursor: Cursor) -> None:
            cursor.execute(
                "INSERT INTO content (content_type, content_id, author_id, parent_id)"
                " VALUES ('comment', %s, %s, %s)",
                (comment_id, AUTHORS[0], post_id),
            )
            key = "post", post_id, counters.COMMENT
            counters.add_to_targets(cursor, {key: counters.CounterDelta(1)})

        self.scheduler.spawn(lambda: mysql.run_in_transaction(write))

    def reconcile(self) -> None:
        """Start a reconciliation, or process a message of one; some messages are repeated."""
        bodies = {name: self.queues.messages[name] for name in (COMPARISONS.name, REPAIRS.name)}
        queue = self.rng.choice([name for name in bodies if bodies[name]] or [""])
        body = self.rng.choice(bodies[queue]) if queue else ""
        again = not self.is_calm and self.rng.random() < 0.3

        def work() -> None:
            with suppress(Unavailable):
                if queue == COMPARISONS.name:
                    orchestrator.process_parts([COMPARISONS.decode(str(body))])
                elif queue == REPAIRS.name:
                    repair.repair([REPAIRS.decode(str(body))])
                else:
                    orchestrator.start()
                if queue and not again:
                    with suppress(ValueError):
                        bodies[queue].remove(body)
                self.note(f"{queue or 'started'} {body}")

        self.scheduler.spawn(work)

    def damage(self) -> None:
        """Damage a random part of the data, as an operator or a defect may.

        No damage of a counter is undone by another one: what the log has of the time between is
        not corrected by a repair then, and the audit reports it.
        """
        kind, target = self.rng.choice(self.targets)
        keys = redis_keys.keys_of(kind.name, target)
        by = self.rng.choice([-2, -1, 1, 3])
        of_target = (
            f"UPDATE counter SET total = total + {{1}} WHERE target_type = '{target.type}'"
            f" AND target_id = {target.id} AND kind = '{{0}}'"
        )
        actor = self.rng.choice(ACTORS)
        part = self.rng.choice(
            ["counter", "comments", "user", "no user", "total", "member", "extra", "filter",
             "projection", "row"]
        )  # fmt: skip
        self.note(f"DAMAGE {part} {kind.name} {target} {actor} {by}")
        match part:
            case "counter":
                mysql.write(of_target.format(kind.name, self.sign_of(kind, target) * abs(by)))
            case "comments":
                mysql.write(of_target.format(counters.COMMENT, by))
            case "user":
                column = self.rng.choice(counters.USER_COLUMNS)
                mysql.write(
                    f"INSERT INTO user_counter (user_id, {column}) VALUES ({actor}, {by})"
                    f" ON DUPLICATE KEY UPDATE {column} = user_counter.{column} + {by}"
                )
            case "no user":
                mysql.write("DELETE FROM user_counter WHERE user_id = %s", (actor,))
            case "row" if self.sign_of(kind, target) > 0 and self.is_on(kind, target, actor):
                where = "WHERE target_type = %s AND target_id = %s AND kind = %s AND actor_id = %s"
                for table in ("reaction", "reaction_log"):
                    mysql.write(f"DELETE FROM {table} {where}", (*target, kind.name, actor))
            case "projection" if redis.execute("HEXISTS", counters.user_key(actor), "value"):
                wrong = counters.UserCounter(*(self.rng.randint(0, 9) for _ in range(5)))
                version = int(redis.execute("HGET", counters.user_key(actor), "version"))
                version += self.rng.choice([0, 50])
                wrong = wrong._replace(version=version)
                redis.execute(
                    "HSET",
                    counters.user_key(actor),
                    "version",
                    version,
                    "value",
                    counters.USER_COUNTER.encode(wrong),
                )
        if not redis.execute("HEXISTS", keys.meta, "base"):
            return
        match part:
            case "total":
                redis.execute("HINCRBY", keys.meta, "base", by)
            case "member" if newest := redis.execute("ZRANGE", keys.recent, 0, -1):
                redis.execute("ZREM", keys.recent, self.rng.choice(newest))
            case "extra":
                redis.execute("ZADD", keys.recent, "NX", 1_000 + actor, actor)
            case "filter" if bits := int(self.meta(kind, target).get("bloom", 0)):
                redis.execute("DEL", keys.bloom)
                redis.execute("SETBIT", keys.bloom, bits, 1)

    def sign_of(self, kind: Kind, target: Target) -> int:
        """Return whether damage makes the counter of a target too great or too small."""
        return 1 if (self.seed + target.id + len(kind.name)) % 2 else -1

    def is_on(self, kind: Kind, target: Target, actor: int) -> bool:
        """Return whether a row counts, whose loss makes a counter too great."""
        [(count,)] = mysql.fetch_all(
            "SELECT COUNT(*) FROM reaction WHERE target_type = %s AND target_id = %s"
            " AND kind = %s AND actor_id = %s AND state = 1",
            (*target, kind.name, actor),
        )
        return bool(count)

    def advance(self) -> None:
        """Play one step of a random process, fault, damage or reconciliation."""
        if self.rng.random() < self.damages:
            self.damage()
        if len(self.scheduler.alive) < MAX_ALIVE and self.rng.random() < 0.08:
            self.reconcile()
        else:
            super().advance()


def finish(run: Reconciled) -> int:
    """Finish all work, then one more reconciliation of everything; return its id."""
    run.calm_down()
    # The first may resume one that compared data before its last damage, the second ends a round.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cycles, "MIN_STEPS", ALL_STEPS)
        for _ in range(3):
            run_id = orchestrator.start()
            run.queues.drain()
    return run_id


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make reconciliation compare few rows in a step, and few steps in a run."""
    monkeypatch.setattr(cycles, "MIN_STEPS", 2)
    monkeypatch.setattr(cycles, "_EVENTS_PER_STEP", 3)
    monkeypatch.setattr(cycles, "_DIRTY_PER_STEP", 2)
    monkeypatch.setattr("plaza.core.reactions.comparisons._ACTORS_PER_STEP", 2)
    monkeypatch.setattr("plaza.operate.reconciliation.run_steps._SUSPECTS_PER_STEP", 2)
    monkeypatch.setattr("plaza.core.reactions.mysql_counts.MAX_RELATIONS", 2)


def delete_runs() -> None:
    for table in (
        "reconciliation", "reconciliation_part", "reconciliation_suspect", "reconciliation_finding",
        "reconciliation_cycle", "reconciliation_dirty",
    ):  # fmt: skip
        mysql.write(f"DELETE FROM {table}")


def count_posts() -> None:
    """Count the posts of the model, which are inserted without their counters."""
    mysql.write(
        "INSERT INTO user_counter (user_id, posts_total, version)"
        " SELECT author_id, COUNT(*), 1 FROM content WHERE content_type = 'post'"
        " GROUP BY author_id ON DUPLICATE KEY UPDATE posts_total = VALUES(posts_total)"
    )


@pytest.mark.sampled
@pytest.mark.parametrize("trouble", ["none", "kills", "all"])
@pytest.mark.parametrize("damages", [0.0, 0.01], ids=["sound", "damaged"])
@pytest.mark.usefixtures("small_steps")
def test_reconciliation_repairs_damage_and_reports_no_drift_without_damage(
    trouble: str,
    damages: float,
    plaza: World,
    monkeypatch: pytest.MonkeyPatch,
    redis_url: str,
    mysql_url: str,
) -> None:
    for n in range(max(1, RUNS // 12)):
        seed = FIRST + n + 1
        with monkeypatch.context() as patch:
            reactions_model.set_up(plaza, patch, seed)
            reactions_model.shorten_gaps(patch)
            if not IS_CLUSTER:  # a simulated restart changes no term of the server
                patch.setattr(stores, "_read_terms", lambda _: {"": masters.find_node("").term})
            delete_runs()
            run = reactions_model.begin(seed, TROUBLES[trouble], plaza, Reconciled)
            assert isinstance(run, Reconciled)
            run.damages = damages
            run.screens = UnorderedScreens() if damages else run.screens
            count_posts()
            try:
                with patch.context() as hooks:
                    reactions_model.hook(run, hooks)
                    for step in range(MAX_STEPS):
                        run.advance()
                        if not damages and trouble != "all" and step % AUDIT_EVERY == 0:
                            cache = read_redis_state(redis_url)
                            record = read_mysql_state(mysql_url, cache=cache)
                            found_busy = compare(record, cache, {"reactions": (1, 0)}).differences
                            assert found_busy == [], "the audit, during the run"
                        if all(device.dead for device in run.devices):
                            break
                    result = finish(run)
                reports = orchestrator.read_reports(limit=50)
                if not damages and trouble == "none":
                    assert [r.examples for r in reports if r.differing] == [], (
                        "no drift without damage"
                    )
                assert orchestrator.read_report(result).is_resolved
                last = finish(run)
                assert orchestrator.read_report(last).examples == [], "no drift after the repair"
                audited = compare(read_mysql_state(mysql_url), read_redis_state(redis_url), {})
                wrong = [d for d in audited.differences if "holds" not in d.subject]
                assert wrong == [], "the audit"
                assert audited.quiet
            except AssertionError as error:
                raise AssertionError(
                    f"PLAZA_MODEL_SEED={seed - 1} -k {trouble}-{damages}: {error}\n"
                    + "\n".join(run.log[-80:])
                ) from error
            finally:
                run.scheduler.redis_away = False
