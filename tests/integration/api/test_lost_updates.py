"""Changes of what another tab or user changed meanwhile: ``ETag`` and ``If-Match`` of all that has
fields to edit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from plaza.commerce.shops import members
from plaza.commerce.shops.members import Appointer
from plaza.infra.mysql import mysql
from plaza.infra.runtime.process import clear_caches
from plaza.people.auth import new_session
from tests.support import sales
from tests.support.plaza import World
from tests.support.shop_api import NOODLES, add_types
from tests.support.sign_in_client import Reply, send
from tests.support.stores import add_users

USER = 700_001


class Editable(NamedTuple):
    """A resource with fields to edit; ``make`` creates it and returns its path. ``body`` makes a
    change of the field ``field`` from its value."""

    folder: str
    method: str
    make: Callable[[str], str]
    field: str
    rest: dict[str, Any]

    def body(self, value: str) -> dict[str, Any]:
        return self.rest | {self.field: value}


def make_post(token: str) -> str:
    body = {"kind": "note", "title": "a", "body": "b"}
    return f"/posts/{send('POST', '/posts', body, token=token, folder='api/content').body['id']}"


def make_shop(token: str) -> str:
    add_types()
    mysql.write("INSERT INTO shop (id, name) VALUES (%s, 'Bistro')", (sales.SHOP,))
    members.appoint(sales.SHOP, USER, "owner", Appointer(sales.ADMIN, is_admin=True))
    return f"/shops/{sales.SHOP}"


def make_voucher(token: str) -> str:
    make_shop(token)
    return f"/vouchers/{sales.offer().id}"


EDITABLES = {
    "post": Editable("api/content", "PATCH", make_post, "title", {}),
    "profile": Editable("api/users", "PATCH", lambda token: "/users/me", "nickname", {}),
    "time zone": Editable("api/users", "PATCH", lambda token: "/users/me", "time_zone", {}),
    "shop": Editable("api/shops", "PUT", make_shop, "name", NOODLES),
    "voucher": Editable("api/flash_sales", "PATCH", make_voucher, "title", {}),
}
VALUES = {"time zone": ("Asia/Tokyo", "Europe/Paris", "Europe/Berlin", "Asia/Seoul")}
TITLES = ("first", "second", "third", "fourth")


@pytest.fixture(params=EDITABLES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_stale_edit_is_a_412_and_changes_nothing(plaza: World, name: str) -> None:
    """Given two tabs that read one version of a resource."""
    add_users(USER, sales.ADMIN)
    token = new_session.open_session(USER)
    editable = EDITABLES[name]
    path, field = editable.make(token), editable.field

    def ask(method: str, value: str | None = None, **headers: str) -> Reply:
        clear_caches()  # another process
        body = None if value is None else editable.body(value)
        reply: Reply = send(
            method, path, body, token=token, headers=headers, folder=editable.folder
        )
        return reply

    change, (first_value, two, three, four) = editable.method, VALUES.get(name, TITLES)
    read = ask("GET").headers["etag"]
    first = ask(change, first_value, **{"if-match": read})
    assert (first.status, first.body[field]) == (200, first_value)
    again = ask(change, first_value, **{"if-match": read})
    assert again.status == 200, "a repeat of a change whose answer was lost"
    newest = ask("GET").headers["etag"]
    assert newest not in (read, "", None)
    assert not newest.startswith("W/")
    for stale in (read, f"W/{newest}", '"stale", "9"'):
        second = ask(change, two, **{"if-match": stale})
        assert (second.status, second.problem) == (412, "changed-meanwhile")
        assert "Read it again" in second.body["detail"]
    assert ask("GET").body[field] == first_value
    third = ask(change, two, **{"if-match": f'"x", {newest}'})
    assert (third.status, third.body[field]) == (200, two)
    fourth = ask(change, three, **{"if-match": third.headers["etag"]})
    assert (fourth.status, fourth.body[field]) == (200, three), "the tag of a change"
    assert ask(change, four, **{"if-match": "*"}).status == 200
    assert ask(change, first_value).status == 200, "without it the last change wins"


@pytest.mark.parametrize("name", ["post", "shop", "voucher"])
def test_anonymous_readers_get_a_weak_tag(plaza: World, name: str) -> None:
    add_users(USER, sales.ADMIN)
    token = new_session.open_session(USER)
    path = EDITABLES[name].make(token)
    public = send("GET", path, folder=EDITABLES[name].folder)
    assert public.headers["etag"].startswith("W/")


def test_a_412_follows_an_edit_of_another_field(plaza: World) -> None:
    """Given a profile whose avatar another device changed after it was read."""
    add_users(USER)
    token = new_session.open_session(USER)

    def ask(method: str, body: Any = None, **headers: str) -> Reply:
        reply: Reply = send(
            method, "/users/me", body, token=token, headers=headers, folder="api/users"
        )
        return reply

    read = ask("GET").headers["etag"]
    assert ask("PATCH", {"avatar": "https://pics.example/1.jpg"}).status == 200
    stale = ask("PATCH", {"nickname": "ada"}, **{"if-match": read})
    assert (stale.status, stale.problem) == (412, "changed-meanwhile")
