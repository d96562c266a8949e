"""WarmUp on real stores: what it loads, at which rate, who starts it, and whom it lets go on."""

from __future__ import annotations

import pytest

from plaza.commerce.flash_sales import redis_sales
from plaza.commerce.shops import redis_store as shop_store
from plaza.core.reactions import COLLECT, LIKE, Kind, Target, kinds, persist, reaction_log
from plaza.core.reactions.redis_keys import keys_of
from plaza.core.switches import change_switches
from plaza.core.switches.model import level_of
from plaza.infra import contexts
from plaza.infra.mysql import mysql
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import masters, redis
from plaza.infra.runtime import clock
from plaza.infra.runtime.process import clear_caches
from plaza.operate.warm_up import redis_store, start_warm_up, warm_stores
from plaza.operate.warm_up.queues import WARM_UPS, WarmUpStep, list_stages
from plaza.operate.warm_up.settings import WarmUpSettings
from plaza.social.recommendations import redis_store as list_store
from tests.integration.conftest import Away
from tests.support import sales
from tests.support.consumers import BASE_US, make_event
from tests.support.content_api import ask, counting_work
from tests.support.keyspace import find_keys
from tests.support.likes_log import add_reviews
from tests.support.logs import read_log
from tests.support.plaza import World, decode

POST, OTHER, REVIEW, SHOP = Target("post", 11), Target("post", 12), Target("review", 1), 5
ADMIN = 1


@pytest.fixture
def pauses_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between pages, which are not made."""
    pauses: list[float] = []
    monkeypatch.setattr(clock, "sleep", pauses.append)
    return pauses


@pytest.fixture
def stored(plaza: World) -> World:
    """Likes of two posts and a review of today, a sale that runs; Redis is empty."""
    mysql.write("INSERT INTO shop (id, name) VALUES (%s, 'Noodles')", (SHOP,))
    plaza.add(POST, OTHER)
    add_reviews(SHOP, REVIEW.id)
    now = clock.now_us() - BASE_US
    persist.save([make_event(actor, at=now, target=POST) for actor in (7, 8, 9)])
    persist.save([make_event(7, at=now, target=REVIEW), make_event(8, at=now, target=REVIEW)])
    persist.save([make_event(7, at=now, kind=COLLECT, target=OTHER)])
    plaza.queues.messages.clear()
    empty()
    return plaza


def empty() -> None:
    redis.execute("FLUSHALL")
    clear_caches()


def loaded(kind: Kind, target: Target) -> bool:
    return bool(redis.execute("HEXISTS", keys_of(kind.name, target).meta, "base"))


def hold() -> None:
    newest = change_switches.read_newest()
    change_switches.set_level(newest.version, "warming", "Redis is empty.", ADMIN)


def level() -> str | None:
    return level_of(change_switches.read_newest().switches)


def test_the_hottest_targets_of_the_log_are_read_in_order(stored: World) -> None:
    assert reaction_log.read_hottest_targets(2) == [("like", POST), ("like", REVIEW)]
    mysql.write(
        "UPDATE reaction_log SET create_date = UTC_DATE() - INTERVAL 2 DAY, version = version - 1"
    )
    assert reaction_log.read_hottest_targets(2) == [], "of days before"


def test_a_run_loads_targets_rankings_lists_shops_and_sales(stored: World) -> None:
    voucher = sales.offer(stock=3)
    empty()
    assert start_warm_up.start_warm_up("test")
    stored.queues.drain()
    assert [loaded(LIKE, POST), loaded(LIKE, REVIEW), loaded(COLLECT, OTHER)] == [True] * 3
    assert not loaded(COLLECT, POST), "without an event in the log"
    assert list_store.read_list(SHOP).review_ids == [REVIEW.id]
    assert redis.execute("EXISTS", shop_store.page_key(SHOP)) == 1
    assert voucher.id in redis_sales.find_sales([voucher.id])
    assert find_keys("*:ranking:week:built_at")
    assert find_keys("*:warm_up:run") == []


def test_contexts_have_their_stages_before_targets() -> None:
    assert list_stages() == ["flash_sales", "recommendations", "targets"]


def test_a_run_without_optional_wings_loads_targets(
    stored: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tuple(item for item in contexts.list_contexts() if item[0] not in contexts.OPTIONAL)
    monkeypatch.setattr(contexts, "list_contexts", lambda: kept)
    assert start_warm_up.start_warm_up("test")
    stored.queues.drain()
    assert [loaded(LIKE, POST), loaded(LIKE, REVIEW)] == [True] * 2
    assert redis.execute("EXISTS", shop_store.page_key(SHOP)) == 0
    assert find_keys("*:warm_up:run") == []


def test_a_stage_of_no_context_is_refused() -> None:
    with pytest.raises(InvalidMessage, match="stage"):
        WARM_UPS.decode('{"run":1743760800000000,"stage":"unknown"}')


def test_targets_are_loaded_at_a_rate_and_in_steps(
    stored: World, pauses_s: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_stores, "_PAGE", 1)
    monkeypatch.setattr(warm_stores, "MAX_RUN_S", 0)
    run_us = clock.now_us()
    targets = [(LIKE, POST), (LIKE, REVIEW)]
    warm_stores.warm_stores([WarmUpStep(run_us, "targets", targets)])
    assert pauses_s == []
    monkeypatch.setattr(warm_stores, "MAX_RUN_S", 20)
    warm_stores.warm_stores([WarmUpStep(run_us, "targets", targets)])
    assert len(pauses_s) == 2
    assert sum(pauses_s) <= 2 / warm_stores.TARGETS_PER_S
    assert loaded(LIKE, REVIEW)


def test_what_is_left_is_the_next_step(stored: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_stores, "MAX_RUN_S", 0)
    step = WarmUpStep(clock.now_us(), "targets", ((LIKE, POST),))
    warm_stores.warm_stores([step])
    [sent] = stored.queues.take(WARM_UPS)
    assert decode(WARM_UPS, sent) == step


def test_a_run_lets_held_readers_go_on_when_it_ends(stored: World) -> None:
    hold()
    run_us = clock.now_us()
    warm_stores.warm_stores([WarmUpStep(run_us)])
    assert level() == "warming"
    stored.queues.drain()
    assert level() == "normal"
    [(reason,)] = mysql.fetch_all("SELECT reason FROM switch_change ORDER BY version DESC LIMIT 1")
    assert reason == "WarmUp has ended."


def test_held_readers_find_a_warm_redis(stored: World) -> None:
    """Given a Redis that was emptied, and an operator who holds readers until it is warm."""
    path, now = f"/posts/{POST.id}", clock.now_us() - BASE_US
    others = [kind for kind in kinds.kinds_of("post") if kind is not LIKE]
    persist.save([make_event(7, at=now, kind=kind, target=POST) for kind in others])
    empty()
    with counting_work() as cold:
        assert ask("GET", path, user=None).status == 200
    empty()
    hold()
    waiting = ask("GET", path, user=None)
    assert (waiting.status, waiting.headers["retry-after"]) == (503, "5")
    start_warm_up.start_warm_up("test")
    stored.queues.drain()
    with counting_work() as warm:
        assert ask("GET", path, user=None).status == 200
    assert warm.statements < cold.statements


def test_a_deploy_of_other_code_starts_a_run(
    stored: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start_warm_up.start_after_change() == 1
    stored.queues.drain()
    monkeypatch.setattr(start_warm_up, "warm_up_settings", lambda: WarmUpSettings("layer:2"))
    assert [start_warm_up.start_after_change() for _ in range(2)] == [1, 0]
    causes = [line["cause"] for line in read_log(capsys, "warm_up_started")]
    assert causes == ["failover", "deploy"]


def test_a_run_changes_no_other_level(stored: World) -> None:
    change_switches.set_level(0, "relieved", "The evening.", ADMIN)
    start_warm_up.start_warm_up("test")
    stored.queues.drain()
    assert level() == "relieved"


def test_readers_are_held_while_mysql_is_away(stored: World, mysql_away: Away) -> None:
    hold()
    with mysql_away(), pytest.raises(Exception, match="MySQL"):
        warm_stores.warm_stores([WarmUpStep(clock.now_us())])
    assert level() == "warming"


def test_one_run_is_in_progress(stored: World) -> None:
    assert start_warm_up.start_warm_up("test")
    assert not start_warm_up.start_warm_up("test")
    [step] = stored.queues.take(WARM_UPS)
    redis_store.end_run()
    assert start_warm_up.start_warm_up("test")
    stored.queues.take(WARM_UPS)
    warm_stores.warm_stores([decode(WARM_UPS, step)])
    assert stored.queues.take(WARM_UPS) == [], "another run was begun since"


def test_a_run_goes_on_when_redis_lost_its_key(stored: World) -> None:
    start_warm_up.start_warm_up("test")
    empty()
    stored.queues.drain()
    assert loaded(LIKE, POST)


def test_a_run_that_sqs_refuses_can_be_started_again(stored: World) -> None:
    stored.queues.away = True
    with pytest.raises(QueueDown):
        start_warm_up.start_warm_up("test")
    stored.queues.away = False
    assert start_warm_up.start_warm_up("test")


def test_another_term_starts_a_run_once(
    stored: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [start_warm_up.start_after_change() for _ in range(3)] == [1, 0, 0]
    stored.queues.drain()
    of_shards = masters.read_masters(max_age_s=0)
    promoted = {shard: master._replace(term="b" * 40) for shard, master in of_shards.items()}
    monkeypatch.setattr(masters, "read_masters", lambda **_: promoted)
    assert [start_warm_up.start_after_change() for _ in range(2)] == [1, 0]
    stored.queues.drain()
    empty()
    assert start_warm_up.start_after_change() == 1, "Redis lost its data"
    causes = [line["cause"] for line in read_log(capsys, "warm_up_started")]
    assert causes == ["failover"] * 3


def test_a_failover_that_sqs_does_not_take_is_found_by_the_next_run(stored: World) -> None:
    stored.queues.away = True
    with pytest.raises(QueueDown):
        start_warm_up.start_after_change()
    stored.queues.away = False
    assert start_warm_up.start_after_change() == 1
