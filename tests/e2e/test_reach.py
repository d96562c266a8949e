"""Visitors on the deployed stack: ids that one function signs and another verifies."""

from __future__ import annotations

from collections.abc import Callable

from tests.e2e.client import Client

ADMIN = 5_820_001
AUTHOR = 5_820_002
POST = {"kind": "note", "title": "Soup", "body": "With dumplings."}


def test_anonymous_ids_are_visitors_of_a_post_and_of_the_site(
    base_url: str, anonymous: Client, sign_in: Callable[..., str]
) -> None:
    admin = Client(base_url, sign_in(ADMIN, role="admin"))
    path = f"/posts/{Client(base_url, sign_in(AUTHOR))('POST', '/posts', POST).json['id']}"

    def visitors() -> int:
        return int(admin("GET", "/ops/reach?days=1").json["visitors"])

    def view(visitor_id: str | None = None) -> int:
        headers = {} if visitor_id is None else {"x-visitor-id": visitor_id}
        return int(anonymous("GET", path, headers=headers).json["viewers"])

    view()  # the network, which tests before may have used
    before = visitors()
    ids = [anonymous("POST", "/visitors").json["visitor_id"] for _ in range(3)]
    assert [view(item) for item in [*ids, *ids, f"{ids[0][:-1]}!"]] == [2, 3, 4, 4, 4, 4, 4]
    assert visitors() == before + 3
    assert anonymous("GET", "/ops/reach").status == 401
