"""The use cases: every operation that writes, every consumer, every schedule, and what operators
do to roles, passkeys and sessions.

A use case has prepared data (``given``), an action under faults (``act``), and requests that follow
in the same process (``then``). Policy tests compare the names with the contract and the template,
so that a new route or function needs a use case.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from plaza.core.targets import external_targets
from plaza.core.targets.external_targets import ExternalTarget
from plaza.people.auth import operate_passkeys, operate_server_keys
from plaza.people.auth.sessions import hash_token, name_session
from plaza.people.auth.sms import read_echo
from tests.faults.aws import QueuedMessage
from tests.faults.harness import (
    Answer,
    Consumer,
    Harness,
    consumers,
    open_session,
    sample_body,
    samples,
)
from tests.faults.transport import Killed
from tests.support.archives import merge_partitions
from tests.support.authenticator import Authenticator

ADMIN, READER, NEIGHBOUR, AUTHOR, FAN = 1, 7, 8, 9, 10
CROWD = (11, 12, 13, 14, 15)
_PHONES = {READER: "+14155550107", NEIGHBOUR: "+14155550108"}
_POST = sample_body("POST /posts")
_COMMENT = sample_body("POST /posts/{post_id}/comments")
_REVIEW = sample_body("POST /shops/{shop_id}/reviews")
_REVIEW.pop("title")  # the version before refuses it, and both prepare the data of tests/versions
_TYPE = sample_body("POST /shop-types")
_TARGET = "/targets/{target_type}/{target_id}"
_OWNED = {"owner": str(AUTHOR), "url": "https://app.example/8f3a"}
_DAYS = 12
_BEGAN = datetime.now(UTC)

Given = Callable[[Harness], None]
Body = Mapping[str, Any] | Callable[[Harness], Mapping[str, Any]] | None


@dataclass(frozen=True)
class ClientRequest:
    """A request. ``key``: its Idempotency-Key; ``token``: the name of its session among the ids."""

    operation: str
    caller: int | None = READER
    body: Body = None
    role: str = "user"
    key: str = ""
    token: str = ""
    address: str = "203.0.113.7"

    def __call__(self, harness: Harness) -> Answer:
        body = self.body(harness) if callable(self.body) else self.body
        headers = {"idempotency-key": self.key} if self.key else {}
        return harness.request(
            self.operation,
            self.caller,
            body,
            role=self.role,
            headers=headers,
            token=str(harness.ids[self.token]) if self.token else "",
            address=self.address,
        )


@dataclass(frozen=True)
class Deliver:
    """A batch for a consumer."""

    folder: str

    @property
    def consumer(self) -> Consumer:
        """Return the name of the consumer."""
        [process] = [
            queue_consumer for queue_consumer in consumers() if queue_consumer.folder == self.folder
        ]
        return process

    def __call__(self, harness: Harness) -> None:
        with contextlib.suppress(Killed):
            assert harness.deliver(self.consumer), f"{self.folder} has nothing to do"


@dataclass(frozen=True)
class ScheduledRun:
    """A run of a schedule. Lambda logs a failure, and the next run follows."""

    folder: str

    def __call__(self, harness: Harness) -> None:
        with contextlib.suppress(Killed, Exception):
            harness.run_schedule(self.folder)


@dataclass(frozen=True)
class OperatorCommand:
    """A command of an operator. One that fails is run again."""

    name: str
    user_id: int | None = None
    role: str = ""

    def __call__(self, harness: Harness) -> Answer:
        arguments = {"user_id": self.user_id, "role": self.role}
        return harness.operate(self.name, {k: value for k, value in arguments.items() if value})


@dataclass(frozen=True)
class UseCase:
    """``covers``: the operation of the contract, the folder of the function, or the command.

    ``reset`` runs after each restore, for state outside of the snapshot. A request without an
    answer writes all or nothing, except for ``separate`` tables, which have a transaction of their
    own. ``varying`` fields of an answer depend on the progress of a request. ``may_add`` tables may
    get rows that are off and count nothing, and the view of a GET show them.
    """

    covers: str
    act: ClientRequest | Deliver | ScheduledRun | OperatorCommand
    given: Given = lambda harness: None
    then: Sequence[ClientRequest | OperatorCommand] = ()
    variant: str = ""
    reset: Given = lambda harness: None
    separate: Collection[str] = ()
    varying: Collection[str] = ()
    may_add: Collection[str] = ()

    @property
    def name(self) -> str:
        """Return the unique name for the command line."""
        return f"{self.covers}, {self.variant}" if self.variant else self.covers


# ---------------------------------------------------------------- prepared data


def populate(harness: Harness) -> None:
    """Prepare users, a shop, a liked post, its comment, a review and a sale; all of it saved."""
    for user_id in (ADMIN, READER, NEIGHBOUR, AUTHOR, FAN, *CROWD):
        role = "admin" if user_id == ADMIN else "user"
        harness.sql(
            "INSERT INTO user (id, nickname, role) VALUES (%s, %s, %s)", user_id, "ada", role
        )
    harness.ids["type_id"] = 3
    harness.sql("INSERT INTO shop_type (id, name) VALUES (3, 'Noodles')")
    harness.ids["user_id"] = AUTHOR
    harness.ids["shop_id"] = harness.expect_success(
        "POST /shops", ADMIN, _shop("Bistro"), role="admin"
    )["id"]
    harness.ids["post_id"] = harness.expect_success("POST /posts", AUTHOR, _POST)["id"]
    comment = harness.expect_success("POST /posts/{post_id}/comments", AUTHOR, _COMMENT)
    harness.ids["comment_id"] = comment["id"]
    review = harness.expect_success("POST /shops/{shop_id}/reviews", AUTHOR, _REVIEW)
    harness.ids["review_id"] = review["id"]
    harness.ids |= {"target_type": "comment", "target_id": comment["id"], "kind": "like"}
    for user_id in (FAN, *CROWD):
        harness.expect_success("PUT /posts/{post_id}/likes/me", user_id)
    harness.expect_success("PUT /reviews/{review_id}/likes/me", FAN)
    harness.expect_success("PUT /users/{user_id}/followers/me", FAN)
    harness.expect_success("PUT /checkins/today", FAN)
    harness.ids["voucher_id"] = _offer(harness, stock=3)
    harness.ids["order_id"] = harness.expect_success("POST /vouchers/{voucher_id}/orders", FAN)[
        "order_id"
    ]
    harness.drain()
    harness.expect_success("GET /feed", FAN)
    report = harness.run_until_quiet()
    assert report.clean, report.to_json()


def _shop(name: str) -> dict[str, Any]:
    return {**sample_body("POST /shops"), "name": name, "type_id": "3"}


def _report(harness: Harness) -> dict[str, Any]:
    target = {"type": "post", "id": harness.ids["post_id"]}
    return {**sample_body("POST /reports"), "target": target}


def _reported(harness: Harness) -> None:
    """Prepare an open report."""
    report = harness.expect_success("POST /reports", READER, _report(harness))
    harness.ids["report_id"] = report["id"]
    harness.run_until_quiet()


def _empty_type(harness: Harness) -> None:
    """Prepare a type without shops."""
    harness.ids["type_id"] = harness.expect_success("POST /shop-types", ADMIN, _TYPE, role="admin")[
        "id"
    ]
    harness.run_until_quiet()


def _voucher(
    harness: Harness, stock: int = 3, closes_at: datetime = _BEGAN + timedelta(days=1)
) -> dict[str, Any]:
    return {
        **sample_body("POST /vouchers"),
        "shop_id": harness.ids["shop_id"],
        "stock": stock,
        "opens_at": (_BEGAN - timedelta(hours=1)).isoformat(),
        "closes_at": closes_at.isoformat(),
    }


def _offer(harness: Harness, **options: Any) -> str:
    body = _voucher(harness, **options)
    return str(harness.expect_success("POST /vouchers", ADMIN, body, role="admin")["id"])


def _last_unit(harness: Harness) -> None:
    harness.ids["voucher_id"] = _offer(harness, stock=1)
    harness.run_until_quiet()


def _sold_out(harness: Harness) -> None:
    _last_unit(harness)
    harness.expect_success("POST /vouchers/{voucher_id}/orders", FAN)
    harness.run_until_quiet()


def _waiting(harness: Harness) -> None:
    _sold_out(harness)
    harness.expect_success("PUT /vouchers/{voucher_id}/waitlist/me", READER)


def _issued(harness: Harness) -> None:
    harness.ids["code"] = harness.expect_success("PUT /orders/{order_id}/code", FAN)["code"]


def _code(harness: Harness) -> dict[str, Any]:
    return {"code": harness.ids["code"]}


_SUBSCRIPTION: dict[str, Any] = {
    "endpoint": "https://fcm.googleapis.com/fcm/send/d1",
    "keys": {"p256dh": "B" + "A" * 86, "auth": "A" * 22},
}


def _requested(operation: str, caller: int = READER, **options: Any) -> Given:
    """Send requests, and save all of their effects."""

    def given(harness: Harness) -> None:
        harness.expect_success(operation, caller, **options)
        harness.run_until_quiet()

    return given


def _notified(harness: Harness) -> None:
    """Let a like notify, and display the list of the author."""
    harness.expect_success("PUT /posts/{post_id}/likes/me", READER)
    harness.run_until_quiet()
    harness.ids["at"] = harness.expect_success("GET /users/me/notifications", AUTHOR)["at"]


def _push_subscription(harness: Harness) -> None:
    added = harness.expect_success("PUT /push-subscriptions", READER, _SUBSCRIPTION)
    harness.ids["subscription_id"] = added["id"]


def _sessions(harness: Harness) -> None:
    for name, user_id in (("token", READER), ("other_token", READER), ("neighbour", NEIGHBOUR)):
        harness.ids[name] = open_session(user_id)


def _sessions_of_author(harness: Harness) -> None:
    for _ in range(2):
        open_session(AUTHOR)


def _session_of_reader(harness: Harness) -> None:
    _sessions(harness)
    token = str(harness.ids["other_token"])
    harness.ids["session_id"] = name_session(hash_token(token))


def _of_neighbour(harness: Harness) -> None:
    harness.ids["user_id"] = NEIGHBOUR


def _code_of_passkey(harness: Harness) -> None:
    """Make a passkey for a code, which is not enrolled yet."""
    code, _ = operate_passkeys.make_passkey_code(READER, operator_id="test")
    issued = harness.expect_success("POST /passkey-challenges", None, {"code": code})
    body = {"name": "Laptop", "code": code, **_device().make(issued)}
    harness.ids["enrollment"] = json.dumps(body)


def _enrolled(harness: Harness) -> None:
    _code_of_passkey(harness)
    enrolled = harness.expect_success("POST /passkeys", None, _saved("enrollment")(harness))
    harness.ids["passkey_id"] = enrolled["passkey_id"]
    issued = harness.expect_success("POST /passkey-challenges", None, {})
    harness.ids["assertion"] = json.dumps({"passkey": _device().sign(issued)})


def _server_key(harness: Harness) -> None:
    harness.ids["key_id"], _ = operate_server_keys.make_server_key(
        "web", {"read"}, 10, operator_id="test"
    )


def _server(harness: Harness) -> None:
    _, harness.ids["server_key"] = operate_server_keys.make_server_key(
        "app", {"act"}, 1_000, operator_id="test"
    )
    harness.ids |= {"target_type": "article", "target_id": "8f3a"}


def _server_with_target(harness: Harness) -> None:
    _server(harness)
    target = ExternalTarget("article", "8f3a", AUTHOR, "https://app.example/8f3a")
    assert external_targets.create_all([target]) == [external_targets.Created.LIVE]


def _enrolled_with_sessions(harness: Harness) -> None:
    _enrolled(harness)
    _sessions(harness)


def _appoint_reader(harness: Harness) -> None:
    harness.sql("UPDATE user SET role = 'operator' WHERE id = %s", READER)


def _passkey_of_session(harness: Harness) -> None:
    """Make a passkey for the session of an operator, which is not enrolled yet."""
    _sessions(harness)
    issued = harness.expect_success("POST /passkey-challenges", READER, {})
    harness.ids["enrollment"] = json.dumps({"name": "Phone", **_device().make(issued)})


@cache
def _device() -> Authenticator:
    return Authenticator(counts=False)


def _saved(name: str) -> Callable[[Harness], Mapping[str, Any]]:
    def body(harness: Harness) -> Mapping[str, Any]:
        saved: dict[str, Any] = json.loads(str(harness.ids[name]))
        return saved

    return body


def _codes(harness: Harness) -> None:
    for user_id, phone in _PHONES.items():
        answer = harness.expect_success(
            "POST /auth/codes", None, {"phone": phone}, address=f"198.51.100.{user_id}"
        )
        harness.ids[f"code of {user_id}"] = (read_echo(phone) or "")[:6]
        harness.ids[f"answer to {user_id}"] = json.dumps(answer)


def _linked_phone(harness: Harness) -> None:
    harness.sql("INSERT INTO user_phone (phone, user_id) VALUES (%s, %s)", _PHONES[READER], READER)


def _sign_in(user_id: int) -> Callable[[Harness], Mapping[str, Any]]:
    def body(harness: Harness) -> dict[str, Any]:
        sent = json.loads(str(harness.ids[f"answer to {user_id}"]))
        code = harness.ids[f"code of {user_id}"]
        return {"challenge": sent["challenge"], "code": code}

    return body


def _dead_letters(harness: Harness) -> None:
    """Prepare dead letters whose cause is repaired."""
    [consumer] = (consumer for consumer in consumers() if consumer.queue == "reactions")
    harness.expect_success("PUT /posts/{post_id}/likes/me", READER)
    harness.expect_success("PUT /posts/{post_id}/likes/me", NEIGHBOUR)
    _move(harness, consumer.queue, consumer.dead_letters)
    harness.ids["queue"] = consumer.queue


def _ids_of_dead_letters(harness: Harness) -> dict[str, Any]:
    """Return the body of a purge of what ``_dead_letters`` prepared."""
    letters = harness.aws.queues[f"{harness.ids['queue']}_dlq"]
    return {"ids": [letter.id for letter in letters] or ["none-is-left"]}


def _move(harness: Harness, source: str, target: str) -> None:
    moved = harness.aws.remove_messages(source, 1000)
    assert moved, f"{source} has no messages"
    harness.aws.put(target, moved)


def _lost_messages(*asks: ClientRequest) -> Given:
    """Send each request to a process that dies before it sends to a queue."""

    def given(harness: Harness) -> None:
        for ask in asks:
            assert ask(harness).is_final
        harness.aws.clear()

    return given


def _refused_messages(*asks: ClientRequest) -> Given:
    """Send each request while SQS is down."""

    def given(harness: Harness) -> None:
        harness.aws.refusing = {process.queue for process in consumers()}
        for ask in asks:
            assert ask(harness).is_final
        harness.aws.refusing = set()

    return given


def _queued(folder: str, *asks: ClientRequest, first: Given = lambda harness: None) -> Given:
    """Fill the queue of a consumer by requests, directly or through other consumers."""

    def given(harness: Harness) -> None:
        first(harness)
        for ask in asks:
            answer = ask(harness)
            assert answer.is_final, answer
        harness.drain(until=Deliver(folder).consumer.queue)

    return given


def _sampled(folder: str) -> Given:
    """Fill the queue with the function's sample messages, about the prepared data."""

    def given(harness: Harness) -> None:
        real = {11: int(harness.ids["post_id"]), 21: int(harness.ids["comment_id"])}

        def adapt(value: Any) -> Any:
            if isinstance(value, dict):
                return {name: adapt(item) for name, item in value.items()}
            if isinstance(value, list):
                return [adapt(item) for item in value]
            return real.get(value, value) if isinstance(value, int) else value

        bodies = [json.dumps(adapt(json.loads(body))) for body in samples(folder)]
        harness.aws.put(Deliver(folder).consumer.queue, [QueuedMessage(body) for body in bodies])

    return given


def _dead_orders(harness: Harness) -> None:
    consumer = Deliver("queue/save_orders").consumer
    for caller in (READER, NEIGHBOUR):
        harness.expect_success("POST /vouchers/{voucher_id}/orders", caller)
    _move(harness, consumer.queue, consumer.dead_letters)


def _drifted(harness: Harness) -> None:
    """Change a counter in MySQL directly."""
    harness.sql(
        "UPDATE counter SET total = total + 1, version = version + 1"
        " WHERE target_type = 'post' AND target_id = %s AND kind = 'like'",
        harness.ids["post_id"],
    )


def _drift_found(harness: Harness) -> None:
    _drifted(harness)
    harness.expect_success("POST /ops/reconciliations", ADMIN, role="admin")


def _liked(harness: Harness) -> None:
    """Save likes that no schedule has processed."""
    for operation in ("PUT /posts/{post_id}/likes/me", "PUT /reviews/{review_id}/likes/me"):
        for caller in (READER, NEIGHBOUR):
            harness.expect_success(operation, caller)
    harness.drain()


def _rolled_up(harness: Harness) -> None:
    _liked(harness)
    harness.run_schedule("schedule/roll_up_likes")


def _recommendation_asked(harness: Harness) -> None:
    _rolled_up(harness)
    harness.run_schedule("schedule/refresh_recommendations")


def _closed_sale(harness: Harness) -> None:
    harness.ids["voucher_id"] = _offer(
        harness, stock=1, closes_at=datetime.now(UTC) + timedelta(seconds=0.5)
    )
    harness.expect_success("POST /vouchers/{voucher_id}/orders", READER)
    harness.drain()
    time.sleep(0.6)  # a sale must close after it was created
    harness.run_schedule("schedule/recover_orders")


def _expired(harness: Harness) -> None:
    _sessions(harness)
    harness.sql("UPDATE session SET expires_at = '2020-01-01'")


def _subscribed(harness: Harness) -> None:
    """Let something of the author notify, which a browser is to get, and end another browser."""
    for name in ("phone", "laptop"):
        harness.sql(
            "INSERT INTO push_subscription (user_id, endpoint_hash, endpoint, public_key,"
            " auth_secret) VALUES (%s, UNHEX(SHA2(%s, 256)), %s, 'B', 'A')",
            AUTHOR,
            name,
            name,
        )
    harness.sql("INSERT INTO push_recipient (user_id, pushed_sequence) VALUES (%s, 0)", AUTHOR)
    _notified(harness)
    ended = hashlib.sha256(b"laptop").hexdigest()
    bodies = [{"users": [AUTHOR]}, {"ended": [[AUTHOR, ended]]}]
    queue = Deliver("queue/prepare_pushes").consumer.queue
    harness.aws.put(queue, [QueuedMessage(json.dumps(body)) for body in bodies])


def _erasure_requested(harness: Harness) -> None:
    """Let a user who reacted, followed, wrote and checked in ask for the erasure."""
    _liked(harness)
    harness.expect_success("DELETE /users/me", READER)
    harness.drain()


def _shop_changed(harness: Harness) -> None:
    """Change a shop in MySQL without the API."""
    harness.run_schedule("schedule/follow_binlog")
    harness.drain()


def _change_shop(harness: Harness) -> None:
    harness.sql("UPDATE shop SET name = 'Past the API' WHERE id = %s", harness.ids["shop_id"])


def _old_log(harness: Harness) -> None:
    """Prepare past days of the log, and a like of today."""
    harness.sql(
        f"UPDATE reaction_log SET create_date = create_date - INTERVAL {_DAYS} DAY,"
        f" version = version - {_DAYS} * 86400000000"
    )
    harness.sql(f"UPDATE reaction SET version = version - {_DAYS} * 86400000000")
    harness.redis.flushall()
    harness.expect_success("PUT /posts/{post_id}/likes/me", READER)
    harness.run_until_quiet()


# ---------------------------------------------------------------- the table


def _route(
    operation: str,
    *,
    caller: int | None = READER,
    body: Body = None,
    role: str = "user",
    key: str = "",
    token: str = "",
    given: Given = lambda harness: None,
    then: Sequence[ClientRequest] | None = None,
    variant: str = "",
    separate: Collection[str] = (),
    varying: Collection[str] = (),
) -> UseCase:
    """Return a use case of a request, followed by a neighbour's, or by ``then``."""
    act = ClientRequest(operation, caller, body, role, key, token)
    if then is None:
        then = (replace(act, caller=NEIGHBOUR if caller == READER else caller, key=f"{key}2"),)
    return UseCase(operation, act, given, tuple(then), variant, separate=separate, varying=varying)


def _set_and_unset(path: str) -> list[UseCase]:
    """Return a use case that sets, and one that unsets."""
    on, off = ClientRequest(f"PUT {path}"), ClientRequest(f"DELETE {path}")
    return [_route(on.operation), _route(off.operation, given=_requested(on.operation))]


def _reaction(path: str) -> list[UseCase]:
    """Return use cases that set and unset, followed by a neighbour's request and the opposite."""
    on, off = ClientRequest(f"PUT {path}"), ClientRequest(f"DELETE {path}")
    completed = _requested(on.operation)
    return [
        _route(on.operation),
        _route(on.operation, then=[off], variant="then taken back"),
        _route(off.operation, given=completed),
        _route(off.operation, given=completed, then=[on], variant="then given again"),
    ]


def _deletion(operation: str, caller: int = AUTHOR, role: str = "user") -> UseCase:
    return _route(operation, caller=caller, role=role, then=[])


def _creation(
    operation: str, body: Body, caller: int = READER, role: str = "user"
) -> list[UseCase]:
    again = ClientRequest(operation, caller, body, role, key="once")
    return [
        _route(operation, caller=caller, role=role, body=body),
        _route(
            operation,
            caller=caller,
            role=role,
            body=body,
            key="once",
            then=[again],
            variant="tried again",
        ),
    ]


# A block ends follows that may be on their way while Redis does not tell: rows of follows that were
# never on are off then.
_UNFOLLOWED = {"reaction", "counter", "GET /users/me/export"}
_ORDER = "POST /vouchers/{voucher_id}/orders"
_CANCEL = ClientRequest("DELETE /orders/{order_id}", FAN)
_WAIT = ClientRequest("PUT /vouchers/{voucher_id}/waitlist/me")
_REDEEM = ClientRequest(
    "POST /vouchers/{voucher_id}/redemptions", ADMIN, _code, "admin", key="once"
)
_LIKE = ClientRequest("PUT /posts/{post_id}/likes/me")
_FOLLOW = ClientRequest("PUT /users/{user_id}/followers/me")
_WRITE = ClientRequest("POST /posts", AUTHOR, _POST)
_CHECK_IN = ClientRequest("PUT /checkins/today")
_REPLACE_SHOP = ClientRequest("PUT /shops/{shop_id}", ADMIN, _shop("Renamed"), role="admin")
_APPOINT = ClientRequest(
    "PUT /shops/{shop_id}/members/{user_id}", ADMIN, {"role": "staff"}, role="admin"
)
_REACTIONS = [
    _LIKE,
    replace(_LIKE, caller=NEIGHBOUR),
    ClientRequest("DELETE /posts/{post_id}/likes/me", FAN),
    ClientRequest("PUT /posts/{post_id}/collects/me"),
    _FOLLOW,
]

ROUTES: list[UseCase] = [
    _route(
        "POST /auth/codes",
        caller=None,
        body={"phone": _PHONES[READER]},
        then=[
            ClientRequest(
                "POST /auth/codes", None, {"phone": "+14155550109"}, address="198.51.100.9"
            )
        ],
    ),
    _route("POST /visitors", caller=None, then=[], varying={"visitor_id", "expires_in"}),
    _route(
        "POST /auth/sessions",
        caller=None,
        body=_sign_in(READER),
        given=_codes,
        then=[ClientRequest("POST /auth/sessions", None, _sign_in(NEIGHBOUR))],
        separate={"session"},  # the user is created first
    ),
    _route(
        "POST /auth/sessions",
        caller=None,
        body=_saved("assertion"),
        given=_enrolled,
        then=[],
        variant="with a passkey",
    ),
    _route("POST /passkey-challenges", caller=None, body={}, then=[], varying={"challenge"}),
    _route(
        "POST /passkeys",
        caller=None,
        body=_saved("enrollment"),
        given=_code_of_passkey,
        then=[],
        varying={"created_at"},
    ),
    _route(
        "POST /passkeys",
        role="operator",
        body=_saved("enrollment"),
        given=_passkey_of_session,
        token="token",
        then=[],
        variant="in a session",
        varying={"created_at"},
    ),
    _route("DELETE /passkeys/{passkey_id}", role="admin", given=_enrolled, then=[]),
    _route(
        "POST /ops/server-keys",
        role="operator",
        body={"name": "web", "scopes": ["read"], "requests_per_s": 10},
        then=[],
        varying={"key_id", "key"},
    ),
    _route("DELETE /ops/server-keys/{key_id}", role="operator", given=_server_key, then=[]),
    _route(
        "DELETE /users/me/sessions/{session_id}",
        given=_session_of_reader,
        token="token",
        then=[],
        separate={"session"},  # it expires, and is deleted when Redis has the mark
    ),
    _route(
        "DELETE /users/{user_id}",
        caller=ADMIN,
        role="admin",
        given=_of_neighbour,
        then=[],
        varying={"requested_at", "erases_at"},
    ),
    _route(
        "PUT /auth/phone",
        body=_sign_in(READER),
        given=_codes,
        then=[ClientRequest("PUT /auth/phone", NEIGHBOUR, _sign_in(NEIGHBOUR))],
    ),
    _route("DELETE /auth/phone", given=_linked_phone, then=[]),
    *(
        _route(
            operation,
            given=_sessions,
            token="token",
            then=[ClientRequest(operation, NEIGHBOUR, token="neighbour")],
        )
        for operation in ("DELETE /auth/sessions", "DELETE /auth/sessions/current")
    ),
    _route(
        "DELETE /users/{user_id}/sessions",
        caller=ADMIN,
        role="admin",
        given=_sessions_of_author,
        then=[],
        varying={"ended"},
    ),
    _route(
        "DELETE /users/me",
        then=[ClientRequest("DELETE /users/me", NEIGHBOUR)],
        varying={"requested_at", "erases_at"},
    ),
    _route(_CHECK_IN.operation),
    _route(_CHECK_IN.operation, then=[_CHECK_IN], variant="twice"),
    *_reaction("/comments/{comment_id}/likes/me"),
    *_reaction("/posts/{post_id}/likes/me"),
    *_reaction("/posts/{post_id}/collects/me"),
    *_reaction("/reviews/{review_id}/likes/me"),
    *_set_and_unset("/comments/{comment_id}/collects/me"),
    *_set_and_unset("/reviews/{review_id}/collects/me"),
    *_set_and_unset("/targets/{target_type}/{target_id}/reactions/{kind}/me"),
    _route("PUT " + _TARGET, caller=None, token="server_key", body=_OWNED, given=_server, then=[]),
    _route(
        "DELETE " + _TARGET, caller=None, token="server_key", given=_server_with_target, then=[]
    ),
    _route(
        "POST /targets",
        caller=None,
        token="server_key",
        body={"targets": [{"type": "article", "id": "8f3a", **_OWNED}]},
        given=_server,
        then=[],
    ),
    *_reaction("/users/{user_id}/followers/me"),
    *(replace(case, may_add=_UNFOLLOWED) for case in _reaction("/users/{user_id}/blocks/me")),
    replace(
        _route(
            "PUT /users/{user_id}/blocks/me",
            given=_requested("PUT /users/{user_id}/followers/me"),
            variant="of a followed user",
        ),
        may_add=_UNFOLLOWED,
    ),
    *_creation("POST /posts", _POST),
    *_creation("POST /posts/{post_id}/comments", _COMMENT),
    *_creation("POST /shops/{shop_id}/reviews", _REVIEW),
    _route(
        "PATCH /posts/{post_id}",
        caller=AUTHOR,
        body={"title": "Edited"},
        varying={"edited_at", "viewers"},
    ),
    _deletion("DELETE /posts/{post_id}"),
    _deletion("DELETE /comments/{comment_id}"),
    _deletion("DELETE /reviews/{review_id}"),
    _route(
        "PUT /users/me/notifications/read",
        caller=AUTHOR,
        body=lambda harness: {"at": harness.ids["at"]},
        given=_notified,
    ),
    _route(
        "PUT /users/me/push",
        body=lambda harness: sample_body("PUT /users/me/push"),
    ),
    _route("PUT /push-subscriptions", body=_SUBSCRIPTION),
    _route(
        "DELETE /push-subscriptions/{subscription_id}",
        given=_push_subscription,
        then=[],
    ),
    _route("PATCH /users/me", body={"nickname": "Ann", "time_zone": "Asia/Shanghai"}),
    _route("POST /reactions/query", body=lambda harness: {"targets": _targets(harness)}),
    _route("POST /shops", caller=ADMIN, role="admin", body=_shop("Tavern")),
    _route("PUT /shops/{shop_id}", caller=ADMIN, role="admin", body=_REPLACE_SHOP.body, then=[]),
    _deletion("DELETE /shops/{shop_id}", ADMIN, "admin"),
    _route(
        _APPOINT.operation,
        caller=ADMIN,
        role="admin",
        body=_APPOINT.body,
        then=[_APPOINT],
        varying={"since"},
    ),
    _route(
        _APPOINT.operation.replace("PUT", "DELETE"),
        caller=ADMIN,
        role="admin",
        given=_requested(_APPOINT.operation, ADMIN, body=_APPOINT.body, role="admin"),
        then=[],
    ),
    _route("POST /shop-types", caller=ADMIN, role="admin", body=_TYPE),
    _route("PUT /shop-types/{type_id}", caller=ADMIN, role="admin", body=_TYPE, then=[]),
    _route("DELETE /shop-types/{type_id}", caller=ADMIN, role="admin", given=_empty_type, then=[]),
    *_creation("POST /reports", _report),
    _route(
        "PUT /ops/reports/{report_id}/outcome",
        caller=ADMIN,
        role="admin",
        body={"outcome": "upheld"},
        given=_reported,
        then=[],
        varying={"resolved_at"},
    ),
    *(
        _route(f"{method} /ops/{path}/hidden", caller=ADMIN, role="admin", then=[])
        for path in ("posts/{post_id}", "comments/{comment_id}", "reviews/{review_id}")
        for method in ("PUT", "DELETE")
    ),
    *_creation("POST /vouchers", _voucher, ADMIN, "admin"),
    _route(
        "PATCH /vouchers/{voucher_id}",
        caller=ADMIN,
        role="admin",
        body={"title": "Supper"},
        then=[],
    ),
    _deletion("DELETE /vouchers/{voucher_id}", ADMIN, "admin"),
    _route(_ORDER),
    _route(_ORDER, then=[ClientRequest(_ORDER)], variant="twice"),
    _route(_ORDER, given=_last_unit, variant="the last unit"),
    _route(_CANCEL.operation, caller=FAN, then=[_CANCEL], variant="twice"),
    _route(
        _CANCEL.operation,
        caller=FAN,
        then=[ClientRequest(_ORDER, FAN)],
        variant="then ordered again",
    ),
    _route(_WAIT.operation, given=_sold_out, varying={"accept_by"}),
    _route(_WAIT.operation.replace("PUT", "DELETE"), given=_waiting, then=[_WAIT]),
    _route("PUT /orders/{order_id}/code", caller=FAN, then=[], varying={"code"}),
    _route(
        _REDEEM.operation,
        caller=ADMIN,
        role="admin",
        body=_code,
        key="once",
        given=_issued,
        then=[_REDEEM],
    ),
    _route(
        "POST /ops/queues/{queue}/redrives",
        caller=ADMIN,
        role="admin",
        body={},
        given=_dead_letters,
        then=[ClientRequest("POST /ops/queues/{queue}/redrives", ADMIN, {}, "admin")],
        varying={"moved", "remaining"},
    ),
    _route(
        "POST /ops/queues/{queue}/purges",
        caller=ADMIN,
        role="admin",
        body=_ids_of_dead_letters,
        given=_dead_letters,
        then=[
            ClientRequest("POST /ops/queues/{queue}/purges", ADMIN, _ids_of_dead_letters, "admin")
        ],
        varying={"purged", "remaining", "missing"},
    ),
    _route(
        "POST /ops/sweeps",
        caller=ADMIN,
        role="admin",
        body={"everything": True},
        varying={"reactions", "checkins"},
    ),
    *(
        _route(
            operation,
            caller=ADMIN,
            role="admin",
            body=sample_body(operation) | {"version": 0},
            varying={"changed_at"},
        )
        for operation in ("PUT /ops/switches", "PUT /ops/switches/level")
    ),
    _route("POST /ops/reconciliations", caller=ADMIN, role="admin", given=_drifted),
]


def _targets(harness: Harness) -> list[dict[str, str]]:
    return [
        {"type": name, "id": str(harness.ids[f"{name}_id"])}
        for name in ("post", "comment", "review")
    ]


def _consumer(folder: str, given: Given) -> UseCase:
    return UseCase(folder, Deliver(folder), given)


def _after(folder: str, *asks: ClientRequest, first: Given = lambda harness: None) -> UseCase:
    return _consumer(folder, _queued(folder, *asks, first=first))


CONSUMERS: list[UseCase] = [
    _after("queue/save_reactions", *_REACTIONS),
    _consumer("queue/acknowledge_reactions", _sampled("queue/acknowledge_reactions")),
    _consumer("queue/rebuild_target", _sampled("queue/rebuild_target")),
    _consumer("queue/warm_up", _sampled("queue/warm_up")),
    _consumer("queue/prepare_pushes", _subscribed),
    _consumer("queue/send_pushes", _sampled("queue/send_pushes")),
    _consumer("queue/send_webhooks", _sampled("queue/send_webhooks")),
    _consumer("queue/record_deliveries", _sampled("queue/record_deliveries")),
    _after("queue/refresh_projections", _WRITE),
    _after("queue/fan_out_post", _WRITE),
    _after("queue/apply_follow_changes", _FOLLOW),
    _after("queue/rebuild_inboxes", ClientRequest("GET /feed")),
    _after("queue/rebuild_recommendations", first=_recommendation_asked),
    _after(
        "queue/save_orders",
        ClientRequest(_ORDER),
        ClientRequest(_ORDER, NEIGHBOUR),
        ClientRequest(_ORDER, AUTHOR),
    ),
    _consumer("queue/decide_dead_orders", _dead_orders),
    _after("queue/rebuild_shops", _REPLACE_SHOP),
    _after("queue/drop_cached", _REPLACE_SHOP),
    _after("queue/save_checkins", _CHECK_IN, replace(_CHECK_IN, caller=NEIGHBOUR)),
    _after("queue/compare_parts", first=_drift_found),
    _after("queue/repair_drift", first=_drift_found),
]

SCHEDULES: list[UseCase] = [
    UseCase(folder, ScheduledRun(folder), given)
    for folder, given in {
        "schedule/sweep_outbox": _lost_messages(_LIKE, _FOLLOW, _CHECK_IN),
        "schedule/scan_keys": lambda harness: None,
        "schedule/delete_expired": _expired,
        "schedule/dispatch_webhooks": _liked,
        "schedule/erase_accounts": _erasure_requested,
        "schedule/refresh_issuers": lambda harness: None,
        "schedule/publish_unsent": _refused_messages(_WRITE),
        "schedule/roll_up_likes": _liked,
        "schedule/refresh_recommendations": _rolled_up,
        "schedule/refresh_rankings": _rolled_up,
        "schedule/recover_orders": _lost_messages(
            ClientRequest(_ORDER), ClientRequest(_ORDER, NEIGHBOUR)
        ),
        "schedule/finalize_vouchers": _closed_sale,
        "schedule/reconcile": _drifted,
        "schedule/sample_gauges": _liked,
    }.items()
] + [
    UseCase(
        "schedule/follow_binlog",
        ScheduledRun("schedule/follow_binlog"),
        _shop_changed,
        reset=_change_shop,
    ),
    UseCase(
        "schedule/maintain_log",
        ScheduledRun("schedule/maintain_log"),
        _old_log,
        reset=lambda harness: merge_partitions(),
    ),
]


def _command(
    name: str,
    given: Given = lambda harness: None,
    separate: Collection[str] = (),
    varying: Collection[str] = (),
    **arguments: Any,
) -> UseCase:
    """Return a use case of a command that is run twice."""
    act = OperatorCommand(name, **arguments)
    return UseCase(name, act, given, (act,), separate=separate, varying=varying)


COMMANDS: list[UseCase] = [
    _command("set-role", user_id=READER, role="operator", varying={"before"}),
    _command("make-passkey-code", _appoint_reader, user_id=READER, varying={"code"}),
    _command("end-passkeys", _enrolled_with_sessions, user_id=READER, varying={"ended"}),
    _command("end-sessions", _sessions, varying={"ended"}),
    _command("open-smoke-session", separate={"user"}, varying={"user_id", "token"}),
]

_TOUCHES_REDIS = {
    "PUT /checkins/today",
    "PUT /posts/{post_id}/likes/me",
    "DELETE /posts/{post_id}/likes/me",
    "PUT /users/{user_id}/followers/me",
    "POST /posts",
    "POST /posts/{post_id}/comments",
    "DELETE /posts/{post_id}",
    "POST /shops/{shop_id}/reviews",
    "POST /vouchers/{voucher_id}/orders",
    "queue/save_checkins",
    "queue/save_orders",
    "queue/save_reactions",
}


def _cold(case: UseCase) -> UseCase:
    """Return ``case`` with a Redis that lost its data."""

    def given(harness: Harness) -> None:
        case.given(harness)
        harness.redis.flushall()

    return replace(case, given=given, variant="cold")


_WARM = [*ROUTES, *CONSUMERS, *SCHEDULES, *COMMANDS]
USE_CASES: list[UseCase] = [*_WARM, *(_cold(c) for c in _WARM if c.name in _TOUCHES_REDIS)]
REACH_NO_STORE = {"queue/send_pushes", "queue/send_webhooks", "schedule/refresh_issuers"}
"""Functions that only send HTTP or write a secret: they have no calls that can be faulted."""
