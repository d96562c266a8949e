"""The functions of plaza/ that one request enters on a warm process.

``python -m tools walk PUT /posts/11/likes/me`` runs the handler of a route on a real Redis and
MariaDB, with its sample event and the session of a user. Other users call it first, so that the
process and Redis have loaded the target. With ``--cold``, Redis is emptied before the counted call.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from cli.paths import LAYER, ROOT, CommandError
from local.stack.bed import run_bed
from local.stack.functions import CONTEXT, load_function
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.people.auth import new_session
from plaza.social.feed import rebuild
from plaza.social.feed.model import INBOX, Timeline

USERS = range(1001, 1007)
ADDRESS = "203.0.113.7"
PLAZA = f"{LAYER / 'plaza'}/"
WORLD = (
    "INSERT INTO user (id, nickname) SELECT 99, 'ada' UNION ALL SELECT 7, 'bob'",
    "INSERT INTO user (id, nickname) SELECT seq, 'cy' FROM seq_1001_to_1006",
    """
    INSERT INTO content (content_type, content_id, author_id, kind, title, body, created_at)
    SELECT 'post', seq, 99, 'note', 'Noodles', 'Thin ones.', NOW(6) - INTERVAL seq HOUR
    FROM seq_11_to_30
    """,
    """
    INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)
    SELECT 'user', 99, 'follow', seq, 1, 1790000000000000 FROM seq_1001_to_1006
    """,
    "INSERT INTO shop (id, name) VALUES (5, 'Bistro')",
    """
    INSERT INTO voucher
        (id, shop_id, title, price_cents, initial_stock, stock, opens_at, closes_at, created_by)
    VALUES (31, 5, 'Dinner', 1990, 100, 100, NOW(6) - INTERVAL 1 HOUR, NOW(6) + INTERVAL 1 HOUR, 1)
    """,
)
"""Rows with the ids of the sample events."""


@dataclass(slots=True)
class Walk:
    """Functions by (context or room of infra, name), in the order in which they were entered first.
    ``of_route``: those that the function of the route entered, directly or not."""

    route: CodeType
    entered: dict[tuple[str, str], None] = field(default_factory=dict)
    of_route: set[tuple[str, str]] = field(default_factory=set)
    _inside: int = 0

    def record(self, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the answer of ``call``, whose functions are added."""
        sys.setprofile(self._note)
        try:
            return call()
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if code is self.route:
            self._inside += {"call": 1, "return": -1}.get(event, 0)
        if event != "call" or not code.co_filename.startswith(PLAZA) or code.co_name[0] == "<":
            return
        folder, module = code.co_filename.removeprefix(PLAZA).rsplit("/", 1)
        step = folder, f"{module.removesuffix('.py')}.{code.co_qualname}"
        self.entered[step] = None
        if self._inside:
            self.of_route.add(step)


def main(args: argparse.Namespace) -> None:
    """Print the walk of a request. Raises CommandError unless it is answered."""
    name, event = find_sample(f"{args.method.upper()} {args.path}")
    with tempfile.TemporaryDirectory(prefix="plaza-walk-") as folder, run_bed(Path(folder)):
        for statement in WORLD:
            mysql.write(statement)
        walk = take_walk(name.partition(".")[0], event, cold=args.cold)
    for number, step in enumerate(walk.entered, 1):
        print(f"{number:4} {' ' if step in walk.of_route else '-'} {step[0]:28} {step[1]}")
    for text, steps in (("route", walk.of_route), ("with session, log line", walk.entered)):
        own = [step for step in steps if not step[0].startswith("infra/")]
        rooms = len({context for context, _ in own})
        print(
            f"{text}: {len(steps)} functions; {len(own)} in {rooms} contexts,"
            f" {len(steps) - len(own)} in infra"
        )


def find_sample(request: str) -> tuple[str, dict[str, Any]]:
    """Return name and event of the first sample of ``GET /posts/11`` or ``GET /posts/{post_id}``.
    Raises CommandError without one."""
    for file in sorted((ROOT / "events").glob("*.json")):
        event = json.loads(file.read_text())
        key = event.get("routeKey", "") if isinstance(event, dict) else ""
        if key and request in (key, f"{key.partition(' ')[0]} {event['rawPath']}"):
            return file.stem, event
    raise CommandError(f"events/ has no sample of {request}")


def take_walk(folder: str, event: dict[str, Any], *, cold: bool) -> Walk:
    """Answer a request for all users; return the walk of the last one. Raises CommandError."""
    module = load_function(f"api/{folder}")
    routes = (route for route, *_ in module.app.endpoints.values())
    key = event["routeKey"]
    [code] = (r.func.__code__ for r in routes if f"{r.method} {r.openapi_path}" == key)
    rebuild.rebuild([[Timeline(INBOX, user_id) for user_id in USERS]])
    walk = Walk(code)
    for user_id, token in zip(USERS, new_session.open_sessions(USERS), strict=True):
        header = f"Bearer {token}"
        request = event | {"headers": event["headers"] | {"authorization": header}}
        if user_id < USERS[-1]:
            check(module.handler(request, CONTEXT))
            continue
        if cold:
            redis.execute("FLUSHALL")
        module.app.identify(header, ADDRESS, "GET /feed")  # the session is cached, as mostly
        check(walk.record(partial(module.handler, request, CONTEXT)))
    return walk


def check(answer: dict[str, Any]) -> None:
    """Raise CommandError unless the status is one of a success."""
    if not re.match("2", str(answer["statusCode"])):
        raise CommandError(f"the request was answered {answer['statusCode']}: {answer['body']}")
