"""Round trips to Redis, counted where redis-py sends: a pipeline is one.

Commands to several nodes of a cluster before the first reply are one, too.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, cast
from unittest import mock

from redis._parsers.hiredis import _HiredisParser
from redis.connection import Connection

from bench.api import Handler, call, like_event, load_handler, query_event, user_event
from bench.figures import Figure, Goal
from bench.harness import Harness
from cli.paths import CommandError
from plaza.people.auth import caller_identity, new_session

POSTS = range(1001, 1101)
USER = 7
OTHER = 8


class RoundTripCount:
    sent = 0


def measure(harness: Harness) -> list[Figure]:
    """Measure a like of a warm post, a page of 100 posts with viewer states, and a profile, each
    with its session and rate limit."""
    harness.clear()
    harness.add_posts(POSTS)
    harness.add_users((USER, OTHER))
    reactions, users = load_handler(), load_handler("users")

    def count(event: dict[str, Any], handler: Handler = reactions) -> int:
        with count_round_trips() as counter:
            call(handler, event)
        return counter.sent

    cold_page = count(query_event(POSTS, USER))
    page = count(query_event(POSTS, USER))
    count(like_event(POSTS[0], USER))
    like = count(like_event(POSTS[0], USER + 1))
    cold_profile = count(user_event(OTHER, USER), users)
    profile = count(user_event(OTHER, USER), users)
    header = f"Bearer {new_session.open_session(USER)}"

    def identify() -> int:
        with count_round_trips() as counter:
            caller = caller_identity.identify(header, "192.0.2.1", "PUT /posts/{post_id}/likes/me")
        if caller.user_id != USER or caller.wait_ms:
            raise CommandError(f"the caller was {caller}")
        return counter.sent

    identify()
    session = identify()
    return [
        Figure("Redis round trips, like", session + like, "", goal=Goal("at most", 2)),
        Figure("  of these, session and rate limit", session, "", goal=Goal("at most", 1)),
        Figure("Redis round trips, page of 100", session + page, "", goal=Goal("at most", 3)),
        Figure("  cold, Redis empty", session + cold_page, ""),
        Figure(
            "Redis round trips, GET /users/{id}", session + profile, "", goal=Goal("at most", 3)
        ),
        Figure("  cold, Redis empty", session + cold_profile, ""),
    ]


@contextlib.contextmanager
def count_round_trips() -> Iterator[RoundTripCount]:
    """Count the commands that are sent to Redis in the block."""
    counter, of_redis, of_parser = (
        RoundTripCount(),
        cast(Any, Connection),
        cast(Any, _HiredisParser),
    )
    send, receive = of_redis.send_packed_command, of_parser.read_from_socket
    pending: set[Connection] = set()

    def send_counted(connection: Connection, *args: Any, **options: Any) -> None:
        counter.sent += not pending or connection in pending
        pending.add(connection)
        send(connection, *args, **options)

    def receive_noticed(parser: _HiredisParser, *args: Any, **options: Any) -> Any:
        pending.clear()
        return receive(parser, *args, **options)

    with (
        mock.patch.object(Connection, "send_packed_command", send_counted),
        mock.patch.object(_HiredisParser, "read_from_socket", receive_noticed),
    ):
        yield counter
