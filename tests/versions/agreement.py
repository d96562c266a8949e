"""Whether both versions answer the same when nothing is in transit, and what clients know."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tests.faults.harness import Id
from tests.support.routes import contract
from tests.versions.deployment import NEW, OLD, Deployment
from tests.versions.traffic import ADMIN, KINDS, MAX_PAGES, PAGE, Traffic

# About jobs and processes (``check_reports``).
UNCOMPARED = (
    "/ops/breakers",
    "/ops/health",
    "/ops/keys",
    "/ops/queues",
    "/ops/lag",
    "/ops/series",
    "/openapi",
)
# Cursors, and the time of an answer.
_VARYING = {"next", "now", "audited_at", "exact"}
# Texts of problems, which may change (docs/api.md, Compatibility).
_TEXTS = ("title", "detail")
QUERIES = {"x": 13.4, "y": 52.53, "name": "Shop", "month": "2026-11"}
_TARGETS = 3
_LONG_PAGE = 10
_EXPORT = "GET /users/me/export"
_LISTS = (
    ("GET /users/{user_id}/followers", "user"),
    ("GET /users/{user_id}/following", "user"),
    ("GET /users/{user_id}/posts", "user"),
    ("GET /posts/{post_id}/likers", "post"),
    ("GET /posts/{post_id}/comments", "post"),
    ("GET /comments/{comment_id}/likers", "comment"),
    ("GET /reviews/{review_id}/likers", "review"),
    ("GET /shops/{shop_id}/reviews", "shop"),
    ("GET /shops/{shop_id}/reviews/recommended", "shop"),
    ("GET /shops/{shop_id}/vouchers", "shop"),
)
CHANGED = {
    "GET /ops/reviews/{review_id}/score": "the like of its author gives a review no like",
}
"""Reads whose answers differ on purpose, and the reason."""
_OWN_LISTS = tuple(
    f"GET {path}"
    for path in (
        "/feed",
        "/users/me/likes",
        "/users/me/collects",
        "/users/me/orders",
        "/users/me/blocks",
        "/users/me/export",
        "/posts/ranking",
    )
)


def check_agreement(traffic: Traffic) -> None:
    """Compare the answers of both versions to all reads, and the totals with those accepted.

    The version that answers first, and so fills the caches in Redis, is drawn for each read.
    """
    traffic.deployment.reset_api()
    for operation, caller, ids, query in _reads(traffic):
        compare_answers(traffic.deployment, operation, caller, ids, query)
    _check_lists(traffic)
    _check_totals(traffic)


def compare_answers(
    deployment: Deployment,
    operation: str,
    caller: int | None,
    ids: Mapping[str, Id],
    query: Mapping[str, Any],
) -> None:
    """Note where the answers of both versions to one read differ. The rows of exports may be in
    another order (``_check_export``)."""
    if not all(operation in version.routes for version in deployment.versions.values()):
        return
    role = "admin" if caller == ADMIN else "user"
    answers = {
        version: deployment.ask(version, operation, caller, ids=ids, query=query, role=role)
        for version in deployment.dice.sample((OLD, NEW), 2)
    }
    old, new = answers[OLD], answers[NEW]
    about = f"{operation} {dict(ids)} to {caller}"
    if operation.endswith("/likers") and (old.status, new.status) == (200, 410):
        return  # a hidden text lists its likers to its author only
    if old.status != new.status:
        deployment.note(f"{about}: {OLD} answers {old.status}, {NEW} answers {new.status}")
        return
    if operation == _EXPORT or operation in CHANGED:
        return
    old_body, new_body = (
        answer.body if answer.status < 400 else _drop_texts(answer.body) for answer in (old, new)
    )
    for difference in find_differences(old_body, new_body):
        deployment.note(f"{about}: {difference}")


def _drop_texts(problem: Mapping[str, Any]) -> dict[str, Any]:
    """Return a problem without its texts and the texts of its errors."""
    kept = {name: value for name, value in problem.items() if name not in _TEXTS}
    if "errors" in kept:
        kept["errors"] = [_drop_texts(error) for error in kept["errors"]]
    return kept


def check_reports(traffic: Traffic) -> None:
    """Let the version that runs no schedules show operators what the other one recorded."""
    deployment = traffic.deployment
    for version in {OLD, NEW} - set(deployment.phase.workers):
        for path in ("/ops/lag", "/ops/keys", "/ops/breakers", "/ops/health"):
            answer = deployment.ask(version, f"GET {path}", ADMIN, role="admin")
            if answer.status != 200:
                deployment.note(f"GET {path} is answered {answer.status} by {version}")


def find_differences(old: Any, new: Any, name: str = "") -> Iterator[str]:
    """Yield where the answer of the new version lacks or changes what the old one has. It may have
    more fields."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old:
            if key in _VARYING:
                continue
            if key not in new:
                yield f"{name}.{key} is missing in {NEW}"
            else:
                yield from find_differences(old[key], new[key], f"{name}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (item, other) in enumerate(zip(old, new, strict=True)):
            yield from find_differences(item, other, f"{name}.{index}")
    elif old != new:
        yield f"{name} is {old!r} in {OLD}, {new!r} in {NEW}"


Read = tuple[str, int | None, Mapping[str, Id], dict[str, Any]]
"""An operation, its caller, ids and query."""


def _reads(traffic: Traffic) -> Iterator[Read]:
    """Yield every read that the contract has, of some targets."""
    record, dice = traffic.record, traffic.dice
    known: dict[str, Sequence[Id]] = {
        f"{name}_id": record.of_type(name) for name in ("post", "comment", "review", "user")
    }
    known |= {"shop_id": record.shops, "voucher_id": record.vouchers, "type_id": [3]}
    for path, methods in contract()["paths"].items():
        names = re.findall(r"\{(\w+)\}", path)
        if "get" not in methods or path.startswith(UNCOMPARED) or not set(names) <= set(known):
            continue
        declared = methods["get"].get("parameters", ())
        taken = {p["name"] for p in declared if p["in"] == "query"}
        query = {name: value for name, value in QUERIES.items() if name in taken}
        if path in ("/users", "/posts"):
            some = record.of_type(path.strip("/").removesuffix("s"))[-10:]
            query["ids"] = ",".join(map(str, some))
        if path.startswith("/ops/"):
            callers: Sequence[int | None] = (ADMIN,)
        elif "/me" in path or path in ("/feed", "/checkins"):
            callers = dice.sample(record.users, 2)
        else:
            callers = (None, dice.choice(record.users))
        for _ in range(_TARGETS if names else 1):
            ids = {name: dice.choice(known[name]) for name in names}
            for caller in callers:
                yield f"GET {path}", caller, ids, query


def _check_lists(traffic: Traffic) -> None:
    """Walk lists with cursors of the other version, starting with either one."""
    record, dice = traffic.record, traffic.dice
    for operation, name in _LISTS:
        target_id = dice.choice(record.shops if name == "shop" else record.of_type(name))
        ids = {f"{name}_id": target_id}
        walks = [
            traffic.walk(operation, versions, dice.choice(record.users), ids)
            for versions in ((OLD, NEW), (NEW, OLD))
        ]
        _compare_walks(traffic.deployment, f"{operation} {target_id}", walks)
        if operation.endswith("likers"):
            _compare_actors(traffic, operation, walks[0], ("like", name, target_id), "user_id")
        elif operation.endswith("followers"):
            _compare_actors(traffic, operation, walks[0], ("follow", "user", target_id), "user")
    for operation in _OWN_LISTS:
        user_id = dice.choice(record.users)
        if operation == _EXPORT:
            _check_export(traffic, user_id)
            continue
        limit = _LONG_PAGE if operation == "GET /posts/ranking" else PAGE
        walks = [
            traffic.walk(operation, versions, user_id, limit=limit)
            for versions in ((OLD, NEW), (NEW, OLD))
        ]
        _compare_walks(traffic.deployment, f"{operation} of {user_id}", walks)
    place = {"x": 13.4, "y": 52.53, "radius": 5000, "limit": _LONG_PAGE}
    for query in (place, {**place, "type": "3"}):
        walks = [
            traffic.walk("GET /shops", versions, None, **query)
            for versions in ((OLD, NEW), (NEW, OLD))
        ]
        _compare_walks(traffic.deployment, f"GET /shops {query}", walks)
    for window in ("day", "week", "hot"):
        walks = [
            traffic.walk("GET /posts/ranking", versions, None, window=window, limit=_LONG_PAGE)
            for versions in ((OLD, NEW), (NEW, OLD))
        ]
        _compare_walks(traffic.deployment, f"GET /posts/ranking, {window}", walks)


def _check_export(traffic: Traffic, user_id: int) -> None:
    """Compare the rows of both versions, which may list them in another order, by the fields that
    the old version has.

    A cursor of the old version begins its section again in the new one. The old version may refuse
    one of the new version, which names a section; then a client starts again.
    """
    walks = [
        traffic.walk(_EXPORT, versions, user_id, limit=_LONG_PAGE)
        for versions in ((OLD,), (NEW,), (OLD, *(NEW,) * MAX_PAGES))
    ]
    known = {item["section"]: item["row"].keys() for item in walks[0]}
    old, new, continued = ({_describe(item, known) for item in walk} for walk in walks)
    if not old == new == continued:
        traffic.deployment.note(
            f"{_EXPORT} of {user_id}: {OLD} has {sorted(old)}, {NEW} {sorted(new)}, and"
            f" {sorted(continued)} after a page of {OLD}"
        )
    page = traffic.deployment.ask(NEW, _EXPORT, user_id, query={"limit": 1}).body
    answer = traffic.deployment.ask(OLD, _EXPORT, user_id, query={"cursor": page["next"]})
    if answer.status not in (200, 400):
        traffic.deployment.note(f"{_EXPORT}: {OLD} answers {answer.status} to a cursor of {NEW}")


def _describe(item: Mapping[str, Any], known: Mapping[str, Collection[str]]) -> str:
    """Return a row of an export as a text, without fields that are not ``known`` in its section."""
    section, row = item["section"], item["row"]
    return f"{section} { {name: row[name] for name in known.get(section, row) if name in row} }"


def _compare_walks(
    deployment: Deployment, about: str, walks: Sequence[Sequence[Mapping[str, Any]]]
) -> None:
    item, other = (_keys_of(items) for items in walks)
    if item != other:
        deployment.note(f"{about}: {OLD} first lists {item}, {NEW} first lists {other}")
    if len(set(item)) < len(item):
        deployment.note(f"{about}: an item is listed twice: {item}")


def _keys_of(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a text for each item of a list by which it is known."""
    names = ("id", "user_id", "order_id")
    return [
        next(
            (str(item[name]) for name in names if name in item),
            str(item["user"]["id"]) if "user" in item else str(item),
        )
        for item in items
    ]


def _compare_actors(
    traffic: Traffic,
    operation: str,
    items: Sequence[Mapping[str, Any]],
    key: tuple[str, str, int],
    name: str,
) -> None:
    listed = {int(item[name]["id"] if name == "user" else item[name]) for item in items}
    if listed != traffic.record.on[key]:
        traffic.deployment.note(
            f"{operation} of {key[2]} lists {sorted(listed)}, not {sorted(traffic.record.on[key])}"
        )


def _check_totals(traffic: Traffic) -> None:
    """Compare the totals that both versions show with what was accepted."""
    record, deployment = traffic.record, traffic.deployment
    for version in (OLD, NEW):
        for user_id in record.users:
            ids = {"user_id": user_id}
            shown = deployment.ask(version, "GET /users/{user_id}", ADMIN, ids=ids).body
            expected = {"nickname": record.nicknames[user_id], **record.totals_of(user_id)}
            _compare_fields(deployment, f"user {user_id} by {version}", shown, expected)
        targets = [
            {"type": name, "id": str(entry)}
            for name in ("post", "comment", "review")
            for entry in record.of_type(name)
        ][-100:]
        answer = deployment.ask(version, "POST /reactions/query", ADMIN, {"targets": targets})
        for item in answer.body.get("items", []):
            expected = {
                kind.total: len(record.on[kind.name, kind.type, int(item["id"])])
                for kind in KINDS
                if kind.type == item["type"]
            }
            about = f"{item['type']} {item['id']} by {version}"
            _compare_fields(deployment, about, item, expected)


def _compare_fields(
    deployment: Deployment, about: str, shown: Mapping[str, Any], expected: Mapping[str, Any]
) -> None:
    for name, value in expected.items():
        if shown.get(name) != value:
            deployment.note(f"{about}: {name} is {shown.get(name)!r}, not {value!r}")
