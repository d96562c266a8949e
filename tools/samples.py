"""``events``: copies of the samples of events/ that a stack accepts.

A copy has a real token and ids that exist, which are created through the API. What a sample deletes
or uses up is created for it alone, so samples can be invoked in any order; ``events`` again renews
them. Ids are found by the names of their fields. ``SAMPLES`` has what is not the rule: the status
of refusals, and what a sample needs for itself.
"""

import argparse
import fnmatch
import hashlib
import json
import re
import secrets
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from cli.paths import CONTRACT, ROOT, CommandError
from local.load.crowd import send_once
from local.load.requests import Call
from local.load.town import make_voucher
from local.stack.issuer import make_id_token
from local.stack.sms import read_code
from local.stack.stack import Stack
from local.stack.tokens import open_sessions
from plaza.infra.queues.sqs import REQUEST

T = TypeVar("T")

EVENTS = ROOT / "events"
MARK = "sample-event"  # the request id of all messages, which dead letters keep
USER, ADMIN = 7, 1  # users of the samples; each admin of a sample is ADMIN
SAMPLED_ON = date(2026, 11, 20)  # when the samples happened
MAX_WAIT_S = 60
_KINDS = {
    "actor_id": "user",
    "buyer_id": "user",
    "run": "run",
    "shop_ids": "shop",
    "stopped_sales": "voucher",
    "like": "user",
}
_POSITIONAL = {"apply_follow_changes": "user_id", "rebuild_inboxes": "user_id"}
_TYPES = frozenset({"user", "post", "comment", "review"})
_BUYERS = {"256705178760118273": USER, "256705178760118274": 8, "256705178760118275": 9}
_TOKEN = re.compile(r"Bearer (?:plain_\d+_(?P<role>\w+?)_)?")
_DAY = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_VERSION = re.compile(r"\b1795\d{12}\b")


class Sample(NamedTuple):
    """What is special about a sample.

    ``status`` of its response; 0: the first success of the contract. ``own``: kind -> what is
    created for it alone. ``fill``: edits the copy.
    """

    status: int = 0
    own: Mapping[str, str] = {}
    fill: Callable[["World", dict[str, Any]], None] | None = None


class Callers:
    """Users of an environment who stand in for the users of the samples.

    ``unavailable``: sample -> why the environment gets no copy of it. An environment without those
    that need them has to find users only.
    """

    base_url = ""
    unavailable: Mapping[str, str] = {}

    def find_user(self, sample_id: int) -> tuple[int, str]:
        """Return (id, token) of the user that stands in for one of the samples."""
        raise NotImplementedError

    def add_user(self) -> tuple[int, str]:
        """Return (id, token) of a new user."""
        raise NotImplementedError

    def make_phone(self) -> str:
        """Return a phone that got no code yet."""
        raise NotImplementedError

    def read_code(self, phone: str) -> str:
        """Return the code that was sent to a phone."""
        raise NotImplementedError

    def make_id_token(self) -> str:
        """Return a new ID token of an accepted issuer."""
        raise NotImplementedError

    def find_auth_secret(self) -> str:
        """Return the id of the secret of sign-in codes."""
        raise NotImplementedError


class LocalCallers(Callers):
    """New users of a local stack."""

    unavailable: Mapping[str, str] = {
        "create_users.deploy": "a local stack has one user of MySQL",
        "renew_canary.create": "a local stack has no secret of the canary",
        "smoke_version.deployment": "a local stack has no CodeDeploy",
    }

    def __init__(self, stack: Stack) -> None:
        self.base_url = stack.base_url
        self._stack = stack
        self._first_id = int(time.time()) * 10_000
        self._users: dict[int, tuple[int, str]] = {}

    def find_user(self, sample_id: int) -> tuple[int, str]:
        if sample_id not in self._users:
            user_id = self._first_id + sample_id
            role = "admin" if sample_id == ADMIN else "user"
            self._users[sample_id] = user_id, open_sessions(self._stack, [user_id], role)[0]
        return self._users[sample_id]

    def add_user(self) -> tuple[int, str]:
        return self.find_user(1_000 + len(self._users))

    def make_phone(self) -> str:
        return f"+1415{2_000_000 + secrets.randbelow(8_000_000)}"

    def read_code(self, phone: str) -> str:
        return read_code(self._stack, phone)

    def make_id_token(self) -> str:
        return make_id_token(self._stack.directory, "ann")

    def find_auth_secret(self) -> str:
        function = self._stack.deployed.functions["RotateSecret"]
        service = json.loads((self._stack.directory / "lambda.json").read_text())
        return str(service["functions"][function]["variables"]["PLAZA_AUTH_SECRET_ID"])


class World:
    """What the samples are about, created when the first sample needs it."""

    def __init__(self, callers: Callers) -> None:
        self.callers = callers
        self._found: dict[tuple[str, str], str] = {}
        self._own: dict[tuple[str, str], str] = {}
        self._own_user: tuple[int, str] | None = None
        self._special = Sample()

    def begin(self, special: Sample) -> None:
        """Forget what the sample before had for itself."""
        self._special, self._own, self._own_user = special, {}, None

    def find(self, kind: str, sample_id: str) -> str:
        """Return the id that stands in for the id of a sample. Raises CommandError."""
        how = self._special.own.get(kind, kind)
        targets = self._own if kind in self._special.own else self._found
        if (kind, sample_id) not in targets:
            targets[kind, sample_id] = _MAKERS[how](self, sample_id)
        return targets[kind, sample_id]

    def find_user(self, sample_id: int) -> tuple[int, str]:
        """Return (id, token) of a user of the samples."""
        if "user" not in self._special.own or sample_id == ADMIN:
            return self.callers.find_user(sample_id)
        if self._own_user is None:
            self._own_user = self.callers.add_user()
        return self._own_user

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        sample_user: int = USER,
    ) -> Mapping[str, Any]:
        """Send a request, again while it is answered with 429 or 503. Raises CommandError."""
        _, token = self.callers.find_user(sample_user)
        answer = send_once(self.callers.base_url, token, Call(method, path, body))
        if not answer.is_success:
            raise CommandError(f"{method} {path} answers {answer}")
        return answer.body

    def create(self, path: str, sample: str, sample_user: int = USER, **values: str) -> str:
        """Create what a sample creates, with other ``values``. Returns its id."""
        body = json.loads(read_sample(sample)["body"]) | values
        return str(self.send("POST", path, body, sample_user)["id"])


def _make_post(world: World, _: str) -> str:
    return world.create("/posts", "content.create_post")


def _make_liked(world: World, _: str) -> str:
    """Create a post with one like, whose acknowledgement is a repeat."""
    post = _make_post(world, "")
    world.send("PUT", f"/posts/{post}/likes/me")

    def find() -> bool:
        items = world.send("GET", f"/ops/audit?target=post:{post}", None, ADMIN)["items"]
        return any(
            audit["kind"] == "like" and (audit["rows"], audit["outbox"]) == (1, 0)
            for audit in items
        )

    _wait_for(find, f"the like of post {post}")
    return post


def _make_shop(world: World, _: str) -> str:
    return world.create("/shops", "shops.create_shop", ADMIN, type_id=world.find("type", "1"))


def _make_type(world: World, _: str) -> str:
    name = f"Food {uuid.uuid4().hex[:8]}"
    return world.create("/shop-types", "shops.create_shop_type", ADMIN, name=name)


def _make_voucher(world: World, _: str, stock: int = 100) -> str:
    voucher = make_voucher(world.find("shop", "5"), time.time(), stock=stock)
    return str(world.send("POST", "/vouchers", voucher, ADMIN)["id"])


def _make_sold_out(world: World, _: str) -> str:
    voucher = _make_voucher(world, "", stock=1)
    _order(world, voucher, 8)
    return voucher


def _make_waited(world: World, _: str) -> str:
    voucher = _make_sold_out(world, "")
    world.send("PUT", f"/vouchers/{voucher}/waitlist/me")
    return voucher


def _make_order(world: World, sample_id: str) -> str:
    return _order(world, world.find("voucher", "31"), _BUYERS[sample_id])


def _order(world: World, voucher: str, buyer: int) -> str:
    """Order a voucher, and wait until the order is stored. Returns its id."""
    order = str(world.send("POST", f"/vouchers/{voucher}/orders", None, buyer)["order_id"])

    def find() -> bool:
        response = world.send("GET", f"/orders/{order}", None, buyer)
        return bool(response["status"] == "success")

    _wait_for(find, f"order {order}")
    return order


def _make_subscription(world: World, _: str) -> str:
    body = json.loads(read_sample("notifications.create_push_subscription")["body"])
    body["endpoint"] += uuid.uuid4().hex
    return str(world.send("PUT", "/push-subscriptions", body)["id"])


_MAKERS: Mapping[str, Callable[[World, str], str]] = {
    "user": lambda world, sample_id: str(world.find_user(int(sample_id))[0]),
    "passkey": lambda _, sample_id: sample_id,  # a device makes one
    "session": lambda _, sample_id: sample_id,
    "post": _make_post,
    "liked": _make_liked,
    "comment": lambda world, _: world.create(
        f"/posts/{world.find('post', '11')}/comments", "content.create_comment"
    ),
    "review": lambda world, _: world.create(
        f"/shops/{world.find('shop', '5')}/reviews", "content.create_review", 8
    ),
    "type": _make_type,
    "shop": _make_shop,
    "voucher": _make_voucher,
    "sold out": _make_sold_out,
    "waited": _make_waited,
    "order": _make_order,
    "subscription": _make_subscription,
    "run": lambda world, _: str(world.send("POST", "/ops/reconciliations", None, ADMIN)["id"]),
}


def _fill_phone(world: World, event: dict[str, Any]) -> None:
    _set_body(event, phone=world.callers.make_phone())


def _fill_challenge(world: World, event: dict[str, Any]) -> None:
    phone = world.callers.make_phone()
    challenge = world.send("POST", "/auth/codes", {"phone": phone})["challenge"]
    _set_body(event, challenge=challenge, code=world.callers.read_code(phone))


def _fill_id_token(world: World, event: dict[str, Any]) -> None:
    event["body"] = json.dumps({"id_token": world.callers.make_id_token()})


def _fill_code(world: World, event: dict[str, Any]) -> None:
    order = world.find("order", next(iter(_BUYERS)))
    _set_body(event, code=world.send("PUT", f"/orders/{order}/code")["code"])


def _fill_switches(world: World, event: dict[str, Any]) -> None:
    """Let both changes of switches set what is set: each is then a repeat of the other."""
    switches = world.send("GET", "/ops/switches", None, ADMIN)
    body = json.loads(event["body"])
    values = {"level": switches["level"] or "normal", "switches": switches["switches"]}
    _set_body(event, version=switches["version"], **{k: v for k, v in values.items() if k in body})


def _fill_secret(world: World, event: dict[str, Any]) -> None:
    event["SecretId"] = world.callers.find_auth_secret()
    event["ClientRequestToken"] = str(uuid.uuid4())


_OWN_ORDER = {"voucher": "voucher", "order": "order"}
_FORBIDDEN, _NO_SESSION = Sample(403), Sample(401)
_NO_DEVICE = Sample(401)
SAMPLES: Mapping[str, Sample] = {
    "acknowledge_reactions.batch": Sample(own={"post": "liked"}),
    "auth.create_passkey": _NO_DEVICE,
    "auth.create_session_with_passkey": _NO_DEVICE,
    "auth.send_code": Sample(fill=_fill_phone),
    "auth.create_session": Sample(fill=_fill_challenge),
    "auth.create_session_with_token": Sample(fill=_fill_id_token),
    "auth.link_phone": Sample(own={"user": "user"}, fill=_fill_challenge),
    "auth.delete_phone": Sample(own={"user": "user"}),
    "auth.delete_current_session": Sample(own={"user": "user"}),
    "auth.delete_sessions": Sample(own={"user": "user"}),
    "content.create_review": Sample(own={"shop": "shop"}),
    "content.delete_post": Sample(own={"post": "post"}),
    "feed.list_feed_posts_without_session": _NO_SESSION,
    "flash_sales.cancel_order": Sample(own=_OWN_ORDER),
    "flash_sales.issue_code": Sample(own=_OWN_ORDER),
    "flash_sales.join_waitlist": Sample(own={"voucher": "sold out"}),
    "flash_sales.leave_waitlist": Sample(own={"voucher": "waited"}),
    "flash_sales.create_voucher_as_user": _FORBIDDEN,
    "flash_sales.place_order": Sample(202, own={"voucher": "voucher"}),
    "flash_sales.get_waitlist_place": Sample(own={"voucher": "waited"}),
    "flash_sales.redeem_code": Sample(own=_OWN_ORDER, fill=_fill_code),
    "follows.follow_user_self": Sample(409),
    "operations.list_queues_as_user": _FORBIDDEN,
    "operations.replace_level": Sample(fill=_fill_switches),
    "operations.replace_switches": Sample(fill=_fill_switches),
    "reactions.like_post_without_session": _NO_SESSION,
    "reactions.set_reaction_without_session": _NO_SESSION,
    "reconciliation.list_reconciliations_as_user": _FORBIDDEN,
    "rotate_secret.create": Sample(fill=_fill_secret),
    "save_reactions.batch": Sample(own={"post": "post"}),
    "save_reactions.poison": Sample(own={"post": "post"}),
    "shops.create_shop_as_user": _FORBIDDEN,
    "shops.delete_shop": Sample(own={"shop": "shop"}),
    "shops.delete_shop_type": Sample(own={"type": "type"}),
    "system.nothing_there": Sample(404),
    "system.wrong_method": Sample(405),
    "users.delete_my_account": Sample(own={"user": "user"}),
    "users.delete_my_session": Sample(404),
    "users.delete_user": Sample(own={"user": "user"}),
    "users.delete_user_sessions": Sample(own={"user": "user"}),
    "users.update_my_profile_role": Sample(400),
}


def main(args: argparse.Namespace) -> int:
    """Write the copies, or delete the dead letters that invoked samples left."""
    stack = Stack.load(args.dir)
    if args.clean:
        urls = [url for name, url in stack.queues.items() if name.endswith("_dlq")]
        print(f"{delete_dead_letters(stack.connect('sqs'), urls)} dead letters deleted")
        return 0
    folder = stack.directory / "events"
    print(f"{len(write(folder, LocalCallers(stack)))} events in {folder}")
    return 0


def write(folder: Path, callers: Callers, pattern: str = "*") -> list[str]:
    """Write copies of samples into ``folder``, and print which ones the environment cannot have;
    return the names. Only the owner may read them: they have tokens. Raises CommandError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    world, written = World(callers), []
    for name in fnmatch.filter(list_samples(), pattern):
        if name in callers.unavailable:
            print(f"without {name}: {callers.unavailable[name]}")
            continue
        copy = copy_sample(name, world)
        (folder / f"{name}.json").write_text(json.dumps(copy, indent=2) + "\n")
        written.append(name)
    return written


def list_samples() -> list[str]:
    return sorted(file.stem for file in EVENTS.glob("*.json"))


def read_sample(name: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EVENTS / f"{name}.json").read_text())
    return event


def function_of(name: str) -> str:
    """Return the logical id of the function that a sample is for."""
    folder = name.partition(".")[0]
    logical_id = "".join(word.capitalize() for word in folder.split("_"))
    return f"{logical_id}Api" if (ROOT / "functions" / "api" / folder).is_dir() else logical_id


def status_of(name: str) -> int:
    """Return the status of the response to a copy of a sample request."""
    if name in SAMPLES and SAMPLES[name].status:
        return SAMPLES[name].status
    method, _, path = read_sample(name)["routeKey"].partition(" ")
    responses = json.loads(CONTRACT.read_text())["paths"][path][method.lower()]["responses"]
    return min(map(int, responses))


def copy_sample(name: str, world: World) -> dict[str, Any]:
    """Return the copy of one sample. Raises CommandError."""
    event, special = read_sample(name), SAMPLES.get(name, Sample())
    world.begin(special)
    if "routeKey" in event:
        _adapt_request(event, world)
    for record in event.get("Records", ()):
        _adapt_record(record, name, world)
    if special.fill is not None:
        special.fill(world, event)
    return event


def _adapt_request(event: dict[str, Any], world: World) -> None:
    headers, path = event["headers"], event["rawPath"]
    if match := _TOKEN.match(headers.get("authorization", "")):
        user = ADMIN if match["role"] == "admin" else USER
        headers["authorization"] = f"Bearer {world.find_user(user)[1]}"
    if "idempotency-key" in headers:
        headers["idempotency-key"] = str(uuid.uuid4())
    if parameters := event.get("pathParameters"):
        event["pathParameters"] = parameters = _adapt(parameters, world)
        path = event["routeKey"].partition(" ")[2].format_map(parameters)
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    if query := event.get("queryStringParameters"):
        if "type" in query:
            query["type"] = world.find("type", query["type"])
        if "target" in query:
            pairs = (pair.split(":") for pair in query["target"].split(","))
            query["target"] = ",".join(f"{kind}:{world.find(kind, id_)}" for kind, id_ in pairs)
        event["rawQueryString"] = "&".join(f"{key}={value}" for key, value in query.items())
    if event.get("body"):
        _set_body(event, **_adapt(json.loads(event["body"]), world))


def _adapt_record(record: dict[str, Any], name: str, world: World) -> None:
    try:
        body = json.loads(_move_times(record["body"]))
    except ValueError:
        pass  # a poison message
    else:
        key = _POSITIONAL.get(name.partition(".")[0], "")
        record["body"] = json.dumps(_adapt(body, world, key), separators=(",", ":"))
    record["messageAttributes"][REQUEST] = {"stringValue": MARK, "dataType": "String"}
    digest = hashlib.md5(record["body"].encode(), usedforsecurity=False)
    record["md5OfBody"] = digest.hexdigest()
    for attribute in ("SentTimestamp", "ApproximateFirstReceiveTimestamp"):
        record["attributes"][attribute] = str(int(time.time() * 1000))


def _move_times(body: str) -> str:
    """Return a message as if it had been sent yesterday."""
    moved = datetime.now(UTC).date() - timedelta(days=1) - SAMPLED_ON
    body = _DAY.sub(lambda day: (date.fromisoformat(day[0]) + moved).isoformat(), body)
    return _VERSION.sub(lambda n: str(int(n[0]) + moved // timedelta(microseconds=1)), body)


def _adapt(value: Any, world: World, key: str = "", type_: str = "") -> Any:
    """Return a JSON value with other ids. ``key``: its field; ``type_``: of the object it is in."""
    if isinstance(value, dict):
        type_ = value.get("type") or value.get("target_type") or ""
        return {name: _adapt(part, world, name, type_) for name, part in value.items()}
    if isinstance(value, list):
        return [
            _adapt(part, world, _key_in_list(value, index, key)) for index, part in enumerate(value)
        ]
    if isinstance(value, bool) or not str(value).isdecimal():
        return value
    kind = type_ if key in ("id", "target_id") else _KINDS.get(key, key.removesuffix("_id"))
    if kind not in _MAKERS:
        return value
    return type(value)(world.find(kind, str(value)))


def _key_in_list(values: list[Any], index: int, key: str) -> str:
    """Return the field of an element: a type of content or a kind names the number after it."""
    before = values[index - 1] if index else None
    return before if before in (*_TYPES, "like") and isinstance(values[index], int) else key


def _set_body(event: dict[str, Any], **values: Any) -> None:
    event["body"] = json.dumps(json.loads(event["body"]) | values)


def _wait_for(read: Callable[[], T | None], what: str) -> T:
    deadline_s = time.monotonic() + MAX_WAIT_S
    while not (value := read()):
        if time.monotonic() > deadline_s:
            raise CommandError(f"{what}: no result after {MAX_WAIT_S} s")
        time.sleep(0.2)
    return value


def delete_dead_letters(sqs: Any, urls: list[str]) -> int:
    """Delete the dead letters of samples from DLQs; return their number. Others stay."""
    deleted = 0
    for url in urls:
        for handle in _receive_marked(sqs, url):
            sqs.delete_message(QueueUrl=url, ReceiptHandle=handle)
            deleted += 1
    return deleted


def _receive_marked(sqs: Any, url: str) -> Iterator[str]:
    """Yield the receipts of dead letters of samples; at the end, release the others."""
    others: list[str] = []
    while received := sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=60, MessageAttributeNames=["All"]
    ).get("Messages"):
        for message in received:
            attribute = message.get("MessageAttributes", {}).get(REQUEST, {})
            if attribute.get("StringValue") == MARK:
                yield message["ReceiptHandle"]
            else:
                others.append(message["ReceiptHandle"])
    for handle in others:
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
