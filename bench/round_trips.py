"""Round trips to Redis, counted where redis-py sends: a pipeline is one.

What goes to several nodes of a cluster before an answer is read is one, too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, cast

from redis.connection import Connection

from bench.api import Handler, like_event, load_handler, query_event, user_event
from bench.figures import Figure, Goal
from bench.harness import Harness
from local.paths import LocalError
from plaza.auth import caller_identity, new_session

POSTS = range(1001, 1101)
USER = 7
OTHER = 8


class RoundTripCount:
    """How often something was sent."""

    sent = 0


def measure(harness: Harness) -> list[Figure]:
    """One like of a warm post; a page of 100 posts with totals and mine; a profile."""
    harness.clear()
    harness.add_posts(POSTS)
    harness.add_users((USER, OTHER))
    reactions, users = load_handler(), load_handler("users")

    def ask(event: dict[str, Any], handler: Handler = reactions) -> int:
        with count_round_trips() as counter:
            answer = handler(event, None)
        if answer["statusCode"] != 200:
            raise LocalError(f"the answer was {answer}")
        return counter.sent

    cold_page = ask(query_event(POSTS, USER))
    page = ask(query_event(POSTS, USER))
    ask(like_event(POSTS[0], USER))
    like = ask(like_event(POSTS[0], USER + 1))
    cold_profile = ask(user_event(OTHER, USER), users)
    profile = ask(user_event(OTHER, USER), users)
    header = f"Bearer {new_session.open_session(USER)}"

    def identify() -> int:
        with count_round_trips() as counter:
            caller = caller_identity.identify(header, "192.0.2.1", "PUT /posts/{post_id}/likes/me")
        if caller.session is None or caller.wait_ms:
            raise LocalError(f"the caller was {caller}")
        return counter.sent

    identify()
    return [
        Figure("Redis round trips, like", like, "", goal=Goal("at most", 1)),
        Figure("  authorizer: session and rate limit", identify(), "", goal=Goal("at most", 1)),
        Figure("Redis round trips, page of 100", page, "", goal=Goal("at most", 2)),
        Figure("  cold, Redis empty", cold_page, ""),
        Figure("Redis round trips, GET /users/{id}", profile, "", goal=Goal("at most", 2)),
        Figure("  cold, Redis empty", cold_profile, ""),
    ]


@contextlib.contextmanager
def count_round_trips() -> Iterator[RoundTripCount]:
    """Counts what is sent to Redis meanwhile."""
    counter, of_redis = RoundTripCount(), cast(Any, Connection)
    send, read = of_redis.send_packed_command, of_redis.read_response
    under_way: set[Connection] = set()

    def send_counted(connection: Connection, *args: Any, **options: Any) -> None:
        counter.sent += not under_way or connection in under_way
        under_way.add(connection)
        send(connection, *args, **options)

    def read_noticed(connection: Connection, *args: Any, **options: Any) -> Any:
        under_way.clear()
        return read(connection, *args, **options)

    of_redis.send_packed_command, of_redis.read_response = send_counted, read_noticed
    try:
        yield counter
    finally:
        of_redis.send_packed_command, of_redis.read_response = send, read
