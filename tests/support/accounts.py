"""A user with a row in each table that can name one."""

from __future__ import annotations

from typing import Any

from plaza.commerce.checkins import daily_checkin
from plaza.commerce.flash_sales import mysql_waitlist, place_order
from plaza.core.idempotency import IdempotentRequest
from plaza.core.reactions import KINDS, LIKE, Target, kinds, queries, react
from plaza.infra.mysql import mysql
from plaza.operate.accounts import erase
from plaza.people.auth import new_session, session_lookup
from plaza.people.follows import follow_user
from plaza.people.users import erasures, profiles, sign_up
from plaza.people.users.erasures import SETTLE_S
from plaza.social.content import commands
from plaza.social.content.model import Draft
from plaza.social.feed import queries as feed_queries
from tests.support.plaza import World
from tests.support.sales import offer
from tests.support.stores import add_users

PHONE = "+14155550123"
FRIEND, STRANGER, BLOCKED = 900_001, 900_002, 900_003
BODY = "what the erased user wrote"


def write(
    author_id: int, text_type: str, key: IdempotentRequest | None = None, **fields: Any
) -> Target:
    """Create a text."""
    if text_type == "post":
        fields |= {"kind": "note", "title": BODY}
    return commands.create(
        Draft(type=text_type, author_id=author_id, body=BODY, **fields), key
    ).text.target


class Account:
    """A user with all that a user can have, and a second device that is signed in."""

    def __init__(self) -> None:
        add_users(FRIEND, STRANGER, BLOCKED)
        mysql.write("INSERT INTO shop (id, name) VALUES (5, 'Bistro')")
        self.id = sign_up.sign_up(PHONE).id
        mysql.write(
            "INSERT INTO user_identity (issuer, subject, user_id) VALUES (%s, 'ann', %s)",
            ("https://id.example.com", self.id),
        )
        self.token = new_session.open_session(self.id)
        session_lookup.find_session(self.token)
        profiles.change_profile(self.id, {"nickname": "erasable", "time_zone": "Europe/Berlin"})
        self.of_friend = write(FRIEND, "post")
        key = IdempotentRequest(b"k" * 32, b"r" * 32)
        self.post = write(self.id, "post", key=key, images=("https://a/b",))
        write(self.id, "comment", parent_id=self.of_friend.id)
        write(self.id, "review", parent_id=5, score=5)
        for kind in kinds.kinds_of("post"):
            react.react(kind, self.of_friend, self.id, True)
        react.react(LIKE, self.post, FRIEND, True)
        follow_user.follow(FRIEND, self.id)
        follow_user.follow(self.id, FRIEND)
        follow_user.follow(self.id, STRANGER)
        mysql.write(
            "INSERT INTO user_block (blocker_id, blocked_id) VALUES (%s, %s)", (self.id, BLOCKED)
        )
        mysql.write(
            "INSERT INTO report (id, reporter_id, target_type, target_id, reason)"
            " VALUES (1, %s, 'user', %s, 'spam')",
            (self.id, STRANGER),
        )
        daily_checkin.check_in(self.id)
        self.order = place_order.place_order(offer().id, self.id)[0]
        mysql_waitlist.add(self.order.voucher_id, self.id)

    def read(self) -> None:
        """Fill what reading fills."""
        profiles.read_own_profile(self.id)
        feed_queries.read_feed(self.id, None, 10)
        feed_queries.read_feed(FRIEND, None, 10)
        queries.list_reacted(LIKE, self.id, None, 10)
        daily_checkin.check_in(self.id)

    def take_back(self) -> None:
        """Take back a reaction of each kind."""
        other, user = write(FRIEND, "post"), Target("user", BLOCKED)
        for kind in KINDS.values():
            target = other if other.type in kind.targets else user
            for on in (True, False):
                react.react(kind, target, self.id, on)

    def use_other_device(self) -> None:
        """What a request does whose session was checked before the erasure."""
        for kind in kinds.kinds_of("post"):
            react.react(kind, self.of_friend, self.id, True)
        follow_user.follow(STRANGER, self.id)
        write(self.id, "post")


def let_pass_be_due(user_id: int, age_s: int = 2 * SETTLE_S) -> None:
    mysql.write(
        "UPDATE erasure SET requested_at = UTC_TIMESTAMP(6) - INTERVAL %s SECOND,"
        " next_pass_at = UTC_TIMESTAMP(6) WHERE user_id = %s",
        (age_s, user_id),
    )


def run_until_erased(world: World, user_id: int) -> int:
    """Run passes and consumers until the user is erased; return the number of passes."""
    for passes in range(1, 10):
        let_pass_be_due(user_id)
        erase.run_passes()
        world.queues.drain()
        [result] = erasures.read_latest(1)
        if result.erased_at:
            return passes
    raise AssertionError("not erased after 9 passes")
