"""Push messages on MariaDB, and a push service on loopback: what is pushed, to whom, how often."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from itertools import count
from typing import Any

import pytest

from plaza.commerce.flash_sales import cancel_order, waitlist
from plaza.core.reactions import FOLLOW, Target, persist
from plaza.infra.aws import secrets
from plaza.infra.http import web_client
from plaza.infra.mysql import mysql
from plaza.infra.queues import sqs
from plaza.infra.queues.announcements import Notice
from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import BadInput
from plaza.infra.runtime.settings import BadSettings
from plaza.notifications.notifications import prepare_pushes
from plaza.notifications.push import (
    PushRequest,
    announce,
    mysql_store,
    prepared,
    subscriptions,
)
from plaza.notifications.push.model import (
    COALESCED_S,
    EXPIRED_S,
    Preference,
    PushIsOff,
    PushTask,
    TooManySubscriptions,
    parse_endpoint,
    topic_of,
)
from plaza.notifications.push.queues import PUSH_REQUESTS, PUSHES
from plaza.notifications.push.send_requests import send
from plaza.notifications.push.settings import push_settings
from plaza.social.content import commands
from tests.integration.commerce.flash_sales.test_order_lifecycle import buy
from tests.integration.commerce.flash_sales.test_waitlist import wait
from tests.support import sales
from tests.support.consumers import make_event, statements
from tests.support.content_api import ask, comment, post
from tests.support.failures import Killed, failing
from tests.support.functions import handler
from tests.support.http_servers import dripping
from tests.support.plaza import World, decode
from tests.support.push_service import (
    CONTACT,
    Answer,
    Browser,
    FakePushService,
    KeyPair,
    serving_pushes,
)
from tests.support.stores import add_users
from tests.support.unread import OWNER, check_unread, display, mark, turn_off, turn_on, unread

POST, OTHER = Target("post", 11), Target("post", 12)
KEYS = KeyPair()
_times = count(1)


@pytest.fixture
def service() -> Iterator[FakePushService]:
    with serving_pushes() as served:
        yield served


@pytest.fixture(autouse=True)
def world(
    plaza: World, set_up: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    set_up(
        push_public_key=KEYS.public, push_key_id="plaza/notifications/push", push_contact=CONTACT
    )
    monkeypatch.setattr(secrets, "_fetch", lambda secret_id: KEYS.pem)
    plaza.add(POST, OTHER, author_id=OWNER)
    add_users(7, 8, 9, OWNER)
    turn_on()
    yield plaza
    check_unread()


@pytest.fixture
def phone(service: FakePushService) -> Browser:
    """A browser of the owner."""
    browser = service.subscribe("phone")
    subscribe(browser)
    return browser


def subscribe(browser: Browser, user_id: int = OWNER) -> str:
    return subscriptions.subscribe(user_id, browser.subscription, unread(user_id)[0])


def like(*actors: int, target: Target = POST, on: bool = True) -> None:
    """Save likes in one transaction."""
    persist.save([make_event(actor, on, next(_times), target) for actor in actors])


def let_time_pass() -> None:
    """Let the time end in which notifications are coalesced."""
    mysql.write("UPDATE push_recipient SET due_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND")


def pushed(browser: Browser) -> list[tuple[Any, ...]]:
    """Return (kind, id of the subject, fresh, what) of what was pushed to a browser."""
    return [
        (push["kind"], push["subject"]["id"], push["fresh"], push["what"])
        for push in browser.read()
    ]


# ---------------------------------------------------------------- notifies


def test_notifies_of_half_a_minute_are_one_push(
    world: World, phone: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[int] = []
    fake_send = sqs.send

    def record_delay(queue: str, body: str, delay_s: int = 0) -> None:
        delays.append(delay_s)
        fake_send(queue, body, delay_s)

    monkeypatch.setattr(sqs, "send", record_delay)
    like(7)
    like(8)
    like(9)
    assert len(world.queues.messages[PUSHES]) == 1
    assert delays == [30]
    world.queues.drain()
    [push] = phone.read()
    assert push == {
        "topic": topic_of(OWNER, "like", *POST),
        "user_id": str(OWNER),
        "kind": "like",
        "subject": {"type": "post", "id": "11", "text": "", "url": None},
        "fresh": 3,
        "what": None,
        "unread": 1,
        "at": push["at"],
    }


def test_a_push_is_encrypted_signed_and_replaces_the_one_before(
    world: World, service: FakePushService, phone: Browser
) -> None:
    like(7)
    world.queues.drain()
    let_time_pass()
    like(8)
    like(7, target=OTHER)
    world.queues.drain()
    first, *later = phone.requests
    assert pushed(phone)[0] == ("like", "11", 1, None)
    assert sorted(pushed(phone)[1:]) == [("like", "11", 2, None), ("like", "12", 1, None)]
    topics = [request.headers["topic"] for request in (first, *later)]
    assert len(set(topics)) == 2
    assert topics.count(topics[0]) == 2
    for request in phone.requests:
        service.check_signature(request, KEYS)
        assert request.headers["ttl"] == "86400"
        assert request.headers["content-encoding"] == "aes128gcm"
        assert b"like" not in request.body


def test_what_was_taken_back_read_or_deleted_is_not_pushed(world: World, phone: Browser) -> None:
    like(7)
    like(7, on=False)
    like(8, target=OTHER)
    mark(display())
    mine = Target("post", int(post(OWNER)))
    like(9, target=mine)
    commands.delete(mine, OWNER)
    world.queues.drain()
    assert phone.read() == []


def test_what_was_pushed_or_notified_before_the_subscription_is_not_pushed_again(
    world: World, service: FakePushService
) -> None:
    like(7)
    phone = service.subscribe("phone")
    subscribe(phone)
    like(8, target=OTHER)
    world.queues.drain()
    let_time_pass()
    like(7)  # a redelivered batch, and so an announcement without a notification
    world.queues.drain()
    assert pushed(phone) == [("like", "12", 1, None)]


def test_comments_and_follows_are_pushed(world: World, phone: Browser) -> None:
    comment("11", 8)
    world.queues.drain()
    let_time_pass()
    persist.save([make_event(7, target=Target("user", OWNER), kind=FOLLOW)])
    world.queues.drain()
    assert pushed(phone) == [("comment", "11", 1, None), ("follow", str(OWNER), 1, None)]


def test_a_notify_after_the_round_was_read_is_pushed_by_the_next_one(
    world: World, phone: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a like that is saved while the pushes of the one before are sent."""
    like(7)
    let_time_pass()
    send_requests = prepared.send_requests

    def save_before(*args: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(prepared, "send_requests", send_requests)
            like(8)
        send_requests(*args)

    monkeypatch.setattr(prepared, "send_requests", save_before)
    [body] = world.queues.take(PUSHES)
    prepare_pushes.prepare([decode(PUSHES, body)])
    monkeypatch.undo()
    assert len(world.queues.messages[PUSHES]) == 1


def test_a_process_that_ends_before_the_sequence_is_stored_pushes_again(
    world: World, phone: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    like(7)
    [body] = world.queues.take(PUSHES)
    with monkeypatch.context() as patch:
        patch.setattr(mysql_store, "raise_sequences", failing(Killed))
        with pytest.raises(Killed):
            prepare_pushes.prepare([decode(PUSHES, body)])
    world.queues.messages[PUSHES].append(body)
    world.queues.drain()
    assert pushed(phone) == [("like", "11", 1, None)] * 2
    assert len({request.headers["topic"] for request in phone.requests}) == 1


def test_a_consumer_that_ends_before_the_announcement_announces_when_it_is_repeated(
    world: World, phone: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = make_event(7, at=next(_times), target=POST)
    with monkeypatch.context() as patch:
        patch.setattr("plaza.notifications.push.announce.announce_notified", failing(Killed))
        with pytest.raises(Killed):
            persist.save([event])
    assert unread() == (1, 1)
    persist.save([event])
    world.queues.drain()
    assert pushed(phone) == [("like", "11", 1, None)]


def test_a_notify_is_due_before_its_message_arrives_and_after_it_was_sent(
    world: World, phone: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(PUSHES, "send", failing(Killed))
        with pytest.raises(Killed):
            announce.announce_notified([OWNER])
    assert mysql.fetch_all("SELECT due_at FROM push_recipient") == [(None,)]
    announce.announce_notified([OWNER])
    [(left_s,)] = mysql.fetch_all(
        "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(6), due_at) FROM push_recipient"
    )
    assert 0 < left_s < COALESCED_S - 4


def test_what_sqs_refuses_is_announced_by_the_sweeper(world: World, phone: Browser) -> None:
    world.queues.away = True
    announce.announce_notified([OWNER])
    announce.announce_notices([Notice("order", OWNER, 1)])
    world.queues.away = False
    assert world.queues.messages[PUSHES] == []
    handler("schedule/sweep_outbox")({}, None)
    assert len(world.queues.messages[PUSHES]) == 2


def test_statements_do_not_grow_with_users_and_groups(
    world: World, service: FakePushService
) -> None:
    costs = []
    for size in (1, 12):
        users = range(1_000 * size, 1_000 * size + size)
        add_users(*users)
        for user in users:
            subscribe(service.subscribe(str(user)), user)
            targets = [Target("post", 100 * user + number) for number in range(3)]
            world.add(*targets, author_id=user)
            persist.save([make_event(7, at=next(_times), target=target) for target in targets])
        world.queues.take(PUSHES)
        before = statements()
        prepare_pushes.prepare([PushTask(users=tuple(users))])
        costs.append(statements() - before)
        assert len(world.queues.take(PUSH_REQUESTS)) == 3 * size
    assert costs[0] == costs[1] <= 9


# ---------------------------------------------------------------- notices


def test_the_outcome_of_an_order_is_pushed(world: World, service: FakePushService) -> None:
    first, second = service.subscribe("first"), service.subscribe("second")
    subscribe(first, 7)
    subscribe(second, 8)
    voucher = sales.offer(stock=1)
    order = buy(world, voucher.id, 7)
    mysql.write(
        "INSERT INTO voucher_order (order_id, voucher_id, buyer_id, reason)"
        " VALUES (%s, %s, 8, 'sold-out')",
        (order.id + 1, voucher.id),
    )
    world.queues.drain()
    announce.announce_notices([Notice("order", 8, order.id + 1), Notice("order", 8, order.id)])
    world.queues.drain()
    [push] = first.read()
    assert (push["kind"], push["subject"]["id"], push["what"]) == (
        "order",
        str(order.id),
        "success",
    )
    assert push["subject"]["text"]
    assert [(p["subject"]["id"], p["what"]) for p in second.read()] == [
        (str(order.id + 1), "failed")
    ], "the outcome of another user's order is not pushed"


def test_an_order_that_was_cancelled_in_between_is_not_pushed(
    world: World, service: FakePushService
) -> None:
    browser = service.subscribe("first")
    subscribe(browser, 7)
    voucher = sales.offer(stock=1)
    order = buy(world, voucher.id, 7)
    world.queues.take(PUSHES)
    service.received.clear()
    cancel_order.cancel_order(order.id, 7)
    announce.announce_notices([Notice("order", 7, order.id)])
    world.queues.drain()
    assert browser.read() == []


def test_an_offer_to_one_who_waits_is_pushed_until_it_ends(
    world: World, service: FakePushService
) -> None:
    browser = service.subscribe("waiting")
    subscribe(browser, 8)
    voucher = sales.offer(stock=1)
    order = buy(world, voucher.id, 7)
    wait(voucher.id, 8)
    cancel_order.cancel_order(order.id, 7)
    waitlist.recover_waitlists([voucher], clock.Deadline.in_s(5))
    [body] = world.queues.take(PUSHES)
    prepare_pushes.prepare([decode(PUSHES, body)])
    world.queues.drain()
    assert [(p["kind"], p["subject"]["id"], p["what"]) for p in browser.read()] == [
        ("waitlist", str(voucher.id), "offered")
    ]
    service.received.clear()
    waitlist.leave_waitlist(voucher.id, 8)
    prepare_pushes.prepare([decode(PUSHES, body)])
    world.queues.drain()
    assert browser.read() == []


def test_the_outcome_of_a_report_is_pushed_to_its_reporter(
    world: World, service: FakePushService
) -> None:
    browser = service.subscribe("reporter")
    subscribe(browser, 8)
    body = {"target": {"type": "post", "id": post(OWNER)}, "reason": "spam"}
    report = ask("POST", "/reports", body, user=8, folder="api/moderation").body["id"]
    reply = ask(
        "PUT",
        f"/ops/reports/{report}/outcome",
        {"outcome": "upheld"},
        user=1,
        role="admin",
        folder="api/moderation",
    )
    assert reply.status == 200, reply.body
    world.queues.drain()
    assert [(p["kind"], p["subject"]["id"], p["what"]) for p in browser.read()] == [
        ("report", report, "upheld")
    ]


# ---------------------------------------------------------------- preferences and subscriptions


def test_a_kind_that_is_off_is_listed_and_not_pushed(world: World, phone: Browser) -> None:
    preferences = subscriptions.change_preferences(OWNER, [Preference("like", "push", False)])
    assert [p.is_on for p in preferences] == [False, True, True, True, True, True]
    like(7)
    comment("11", 8)
    world.queues.drain()
    assert pushed(phone) == [("comment", "11", 1, None)]
    assert unread()[1] == 2
    subscriptions.change_preferences(OWNER, [Preference("like", "push", True)])
    let_time_pass()
    like(8)
    world.queues.drain()
    assert pushed(phone)[1:] == [("like", "11", 2, None)]


def test_each_browser_of_a_user_gets_a_push_and_one_that_ended_none(
    world: World, service: FakePushService, phone: Browser
) -> None:
    laptop, old = service.subscribe("laptop"), service.subscribe("old")
    subscribe(laptop)
    subscriptions.unsubscribe(OWNER, subscribe(old))
    like(7)
    world.queues.drain()
    assert pushed(phone) == pushed(laptop) == [("like", "11", 1, None)]
    assert old.read() == []


def test_a_browser_belongs_to_the_user_who_added_it_last(world: World, phone: Browser) -> None:
    subscribe(phone, 7)
    like(8)
    world.queues.drain()
    assert phone.read() == []
    rows = mysql.fetch_all("SELECT user_id FROM push_subscription")
    assert rows == [(7,)]


def test_a_repeated_subscription_loses_no_notify(world: World, phone: Browser) -> None:
    """Given an app that subscribes each time it starts."""
    like(7)
    subscribe(phone)
    world.queues.drain()
    assert pushed(phone) == [("like", "11", 1, None)]


def test_a_subscription_is_safe_to_repeat_and_limited(
    world: World, service: FakePushService, phone: Browser
) -> None:
    assert subscribe(phone) == subscribe(phone)
    for number in range(9):
        subscribe(service.subscribe(f"b{number}"))
    with pytest.raises(TooManySubscriptions):
        subscribe(service.subscribe("one-more"))
    subscribe(phone)


@pytest.mark.parametrize(
    ("endpoint", "is_allowed"),
    [
        ("https://fcm.googleapis.com/fcm/send/d1", True),
        ("https://updates.push.services.mozilla.com/wpush/v2/x", True),
        ("https://web.push.apple.com/x", True),
        ("https://db5p.notify.windows.com/w/?token=x", True),
        ("https://jmt17.google.com/fcm/send/d1", True),
        ("HTTPS://FCM.googleapis.com/fcm/send/d1", True),
        ("https://evil.example\\.push.apple.com/x", False),
        ("https://evil.example/.push.apple.com/x", False),
        ("https://evil.example?.push.apple.com/x", False),
        ("https://evil_example.push.apple.com/x", False),
        ("https://..push.apple.com/x", False),
        ("http://fcm.googleapis.com/fcm/send/d1", False),
        ("https://fcm.googleapis.com:8443/fcm/send/d1", False),
        ("https://fcm.googleapis.com.example.com/x", False),
        ("https://example.com#.notify.windows.com/", False),
        ("https://a@fcm.googleapis.com/x", False),
        ("https://xnotify.windows.com/", False),
        ("https://169.254.169.254/latest/meta-data/", False),
        ("http://127.0.0.1/x", False),
        ("https://[::1/x", False),
    ],
)
def test_only_push_services_are_sent_to(endpoint: str, is_allowed: bool) -> None:
    with nullcontext() if is_allowed else pytest.raises(ValueError, match=r"^(is|has) "):
        assert parse_endpoint(endpoint, push_settings().hosts, is_local=False)


def test_a_deployment_names_its_push_services(set_up: Callable[..., None]) -> None:
    set_up(push_hosts="push.example.com, *.push.example.org")
    hosts = push_settings().hosts
    for endpoint in ("https://push.example.com/x", "https://a.push.example.org/x"):
        assert parse_endpoint(endpoint, hosts, is_local=False).text == endpoint
    for endpoint in ("https://fcm.googleapis.com/x", "https://push.example.org/x"):
        with pytest.raises(ValueError, match="is not one of a push service"):
            parse_endpoint(endpoint, hosts, is_local=False)


@pytest.mark.parametrize("hosts", ["*", "*.", "example", "https://push.example.com", "a.b:443"])
def test_a_push_service_is_the_name_of_a_host(set_up: Callable[..., None], hosts: str) -> None:
    set_up(push_hosts=hosts)
    with pytest.raises(BadSettings, match="PLAZA_PUSH_HOSTS"):
        push_settings()
    set_up()


def test_a_subscription_elsewhere_is_refused(service: FakePushService) -> None:
    stranger = service.subscribe("x").subscription._replace(endpoint="https://example.com/x")
    with pytest.raises(BadInput):
        subscriptions.subscribe(OWNER, stranger, 0)


def test_without_a_key_nothing_is_pushed_or_asked_of_mysql(
    world: World, phone: Browser, set_up: Callable[..., None]
) -> None:
    set_up(push_public_key="")
    like(7)
    before = statements()
    like(8)
    without = statements() - before
    turn_off()
    assert world.queues.messages[PUSHES] == []
    with pytest.raises(PushIsOff):
        subscribe(phone)
    set_up(push_public_key=KEYS.public)
    turn_on()
    like(9)
    before = statements()
    like(6)
    assert statements() - before == without + 1


def test_the_routes_of_pushes(service: FakePushService) -> None:
    def call(method: str, path: str, body: Any = None) -> Any:
        return ask(method, path, body, user=OWNER)

    assert call("GET", "/users/me/push").body["public_key"] == KEYS.public
    change = {"preferences": [{"kind": "order", "channel": "push", "on": False}]}
    changed = call("PUT", "/users/me/push", change).body
    assert [p["kind"] for p in changed["preferences"] if not p["on"]] == ["order"]
    endpoint, public_key, auth = service.subscribe("x").subscription
    body = {"endpoint": endpoint, "keys": {"p256dh": public_key, "auth": auth}}
    added = call("PUT", "/push-subscriptions", body)
    assert added.status == 200, added.body
    assert mysql.fetch_all("SELECT COUNT(*) FROM push_subscription") == [(1,)]
    path = f"/push-subscriptions/{added.body['id']}"
    assert [call("DELETE", path).status for _ in range(2)] == [204, 404]
    assert call("DELETE", "/push-subscriptions/7").status in (400, 404)
    assert mysql.fetch_all("SELECT COUNT(*) FROM push_subscription") == [(0,)]
    for wrong in (
        {**body, "endpoint": "https://example.com/x"},
        {**body, "keys": {"p256dh": "x", "auth": auth}},
        {"endpoint": endpoint},
    ):
        assert call("PUT", "/push-subscriptions", wrong).status == 400


# ---------------------------------------------------------------- push services


def request_of(browser: Browser, age_s: int = 0) -> PushRequest:
    topic = topic_of(OWNER, "like", *POST)
    return PushRequest(OWNER, browser.subscription, topic, "{}", int(clock.now_s()) - age_s)


@pytest.mark.parametrize("status", [404, 410])
def test_a_subscription_that_its_service_ended_ends(
    world: World, service: FakePushService, phone: Browser, status: int
) -> None:
    laptop = service.subscribe("laptop")
    subscribe(laptop)
    service.answers[phone.path] = Answer(status)
    like(7)
    world.queues.drain()
    assert len(laptop.read()) == 1
    rows = mysql.fetch_all("SELECT endpoint FROM push_subscription")
    assert rows == [(laptop.subscription.endpoint,)]


@pytest.mark.parametrize(
    ("answer", "delay_s"),
    [
        (Answer(429, {"Retry-After": "17"}), 17),
        (Answer(429, {"Retry-After": "86400"}), 900),
        (Answer(429, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), 60),
        (Answer(429), 60),
        (Answer(503), 60),
    ],
)
def test_a_service_that_is_busy_is_asked_again_when_it_allows_it(
    world: World,
    service: FakePushService,
    phone: Browser,
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
    delay_s: int,
) -> None:
    laptop = service.subscribe("laptop")
    service.answers[phone.path] = answer
    sent: list[tuple[PushRequest, int]] = []
    monkeypatch.setattr(
        sqs, "send", lambda queue, body, delay=0: sent.append((PUSH_REQUESTS.decode(body), delay))
    )
    request = request_of(phone)
    send([request, request_of(laptop)])
    assert sent == [(request, delay_s)]
    assert len(laptop.requests) == 1


def test_a_service_that_does_not_answer_is_asked_again(
    world: World, service: FakePushService, phone: Browser
) -> None:
    endpoint = "http://127.0.0.1:9/x"  # nothing listens there
    away = request_of(phone)._replace(subscription=phone.subscription._replace(endpoint=endpoint))
    send([away])
    assert [decode(PUSH_REQUESTS, body) for body in world.queues.take(PUSH_REQUESTS)] == [away]


def test_a_service_that_drips_holds_no_other_push(
    world: World, service: FakePushService, phone: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a batch with a push to a service that answers a byte at a time, without end."""
    monkeypatch.setattr(web_client, "MAX_REQUEST_S", 0.5)
    with dripping() as url:
        slow = request_of(phone)._replace(subscription=phone.subscription._replace(endpoint=url))
        began_s = time.monotonic()
        send([slow, request_of(phone)])
        assert time.monotonic() - began_s < 4
    assert len(phone.requests) == 1
    assert [decode(PUSH_REQUESTS, body) for body in world.queues.take(PUSH_REQUESTS)] == [slow]


@pytest.mark.parametrize(
    "answer", [Answer(400), Answer(403), Answer(302, {"Location": "/elsewhere"})]
)
def test_what_a_service_refuses_is_dropped_and_no_redirect_is_followed(
    world: World, service: FakePushService, phone: Browser, answer: Answer
) -> None:
    service.answers[phone.path] = answer
    send([request_of(phone)])
    assert [request.path for request in service.received] == [phone.path]
    assert not any(world.queues.messages.values())
    assert mysql.fetch_all("SELECT COUNT(*) FROM push_subscription") == [(1,)]


def test_keys_that_are_no_keys_and_old_requests_are_dropped(
    world: World, service: FakePushService, phone: Browser
) -> None:
    broken = phone.subscription._replace(public_key="B" + "A" * 86)
    send([request_of(phone)._replace(subscription=broken), request_of(phone, EXPIRED_S)])
    assert service.received == []
    assert not any(world.queues.messages.values())


def test_a_batch_is_sent_again_if_sqs_refuses_what_is_postponed(
    world: World, service: FakePushService, phone: Browser
) -> None:
    service.answers[phone.path] = Answer(429)
    world.queues.away = True
    with pytest.raises(QueueDown):
        send([request_of(phone)])
