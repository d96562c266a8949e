"""What clients do, each step divided between two versions, and the answers that they must get.

A step gets two versions: what the ``first`` one wrote, the ``second`` one reads, repeats or takes
back. ``Record`` has what was accepted, so every total is known.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tests.faults.harness import Answer, Id, sample_body
from tests.versions.deployment import Asked, Deployment

ADMIN = 1
FIRST_USERS = tuple(range(11, 19))
_POST = sample_body("POST /posts")
_SHOP = sample_body("POST /shops")
_TYPE = sample_body("POST /shop-types")
_VOUCHER = sample_body("POST /vouchers")
_DEFAULT_SWITCHES = {
    "cached_lists_only": False,
    "anonymous_factor": 1.0,
    "stopped_sales": [],
}
PAGE = 2
MAX_PAGES = 100
_STOCK = 100


class Kind(NamedTuple):
    """A kind of reaction: its route, and the fields of its answer."""

    name: str
    type: str
    route: str
    total: str
    state: str


KINDS = (
    Kind("like", "post", "/posts/{post_id}/likes/me", "likes", "liked"),
    Kind("like", "comment", "/comments/{comment_id}/likes/me", "likes", "liked"),
    Kind("like", "review", "/reviews/{review_id}/likes/me", "likes", "liked"),
    Kind("collect", "post", "/posts/{post_id}/collects/me", "collects", "collected"),
    Kind("follow", "user", "/users/{user_id}/followers/me", "followers", "following"),
)


@dataclass
class Record:
    """What was accepted.

    ``on``: actors by (kind, type of the target, its id). ``authors``: by (type, id); the type
    ``deleted`` is of what no longer exists, whose likes stay counted. ``fell``: (user, field) of
    what was taken back since the last quiet moment; only these may fall below the values in
    ``seen``.
    """

    users: list[int] = field(default_factory=lambda: list(FIRST_USERS))
    tokens: dict[int, str] = field(default_factory=dict)
    nicknames: dict[int, str] = field(default_factory=dict)
    on: dict[tuple[str, str, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    authors: dict[tuple[str, int], int] = field(default_factory=dict)
    titles: dict[int, str] = field(default_factory=dict)
    comments: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    shops: list[int] = field(default_factory=list)
    vouchers: list[int] = field(default_factory=list)
    orders: dict[tuple[int, int], str] = field(default_factory=dict)
    fell: set[tuple[int, str]] = field(default_factory=set)
    seen: dict[tuple[int, str], int] = field(default_factory=dict)

    def of_type(self, name: str) -> list[int]:
        """Return the ids of targets of a type."""
        if name == "user":
            return self.users
        return [item for kind, item in self.authors if kind == name]

    def totals_of(self, user_id: int) -> dict[str, int]:
        """Return the totals in a user's profile."""

        def received(kind: str) -> int:
            return sum(
                len(actors)
                for (name, target, item), actors in self.on.items()
                if name == kind and self.authors.get((target, item)) == user_id
            )

        return {
            "followers": len(self.on["follow", "user", user_id]),
            "following": sum(
                user_id in actors for (name, _, _), actors in self.on.items() if name == "follow"
            ),
            "posts": sum(
                kind == "post" and author == user_id for (kind, _), author in self.authors.items()
            ),
            "likes_received": received("like"),
            "collects_received": received("collect"),
        }


class Traffic:
    """Clients of a deployment."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.dice = deployment, deployment.dice
        self.record = Record()
        self._serial = 0
        self._reviewed: set[tuple[int, int]] = set()  # (author, shop): once each

    # ------------------------------------------------------------ prepared data

    def prepare(self) -> None:
        """Insert the users and a shop type, and create what the steps need, in the versions of the
        phase."""
        for user_id in (ADMIN, *FIRST_USERS):
            role = "admin" if user_id == ADMIN else "user"
            self.record.nicknames[user_id] = f"user {user_id}"
            self.deployment.sql(
                "INSERT INTO user (id, nickname, role) VALUES (%s, %s, %s)",
                user_id,
                self.record.nicknames[user_id],
                role,
            )
        self.deployment.ids["type_id"] = 3
        self.deployment.sql("INSERT INTO shop_type (id, name) VALUES (3, 'Noodles')")
        first, second = self.deployment.phase.api[0], self.deployment.phase.api[-1]
        self.open_shop(first, second)
        for _ in range(3):
            self.write_post(first, second)
        self.write_comment(first, second)
        self.write_review(first, second)
        self.deployment.run_until_quiet()

    # ------------------------------------------------------------ reactions

    def react(self, first: str, second: str) -> None:
        """One version decides a reaction; the other one repeats it and reads the total."""
        kind, target_id, user_id = self._choose_reaction()
        self._react(first, kind, target_id, user_id, on=self.dice.random() < 0.7)
        is_on = user_id in self.record.on[kind.name, kind.type, target_id]
        self._react(second, kind, target_id, user_id, on=is_on)
        if kind.type != "user":
            self._query(self.dice.choice((first, second)), kind, target_id, user_id)

    def react_at_once(self, first: str, second: str) -> None:
        """Both versions decide likes of one target at the same time."""
        kind = KINDS[0]
        target_id = self.dice.choice(self.record.of_type("post"))
        actors = self.record.on["like", "post", target_id]
        users = [user for user in self.record.users if user not in actors][:2]
        if len(users) < 2 or first == second:
            self.react(first, second)
            return
        answers = self.deployment.ask_both(
            *(
                Asked(version, f"PUT {kind.route}", user, None, {"ids": {"post_id": target_id}})
                for version, user in zip((first, second), users, strict=True)
            )
        )
        actors.update(users)
        totals = sorted(answer.body.get("likes") or 0 for answer in answers)
        self._check(f"likes of post {target_id} at once", totals, [len(actors) - 1, len(actors)])

    def change_quickly(self, first: str, second: str) -> None:
        """One reaction is changed in turns, and one user follows two before either is stored."""
        post, user = KINDS[0], KINDS[-1]
        post_id = self.dice.choice(self.record.of_type("post"))
        actor, *followed = self.dice.sample(self.record.users, 3)
        is_on = actor in self.record.on["like", "post", post_id]
        for version, on in ((first, not is_on), (second, is_on), (first, not is_on)):
            self._react(version, post, post_id, actor, on=on)
        for version, user_id in zip((first, second), followed, strict=True):
            self._react(version, user, user_id, actor, on=True)

    def lose_messages(self, first: str, second: str) -> None:
        """Messages are lost with the process that was to send them; sweeps send them again."""
        self.react(first, second)
        self.check_in(first, second)
        pairs = [(v, user) for v in self.record.vouchers for user in self.record.users]
        voucher_id, buyer = self.dice.choice([p for p in pairs if p not in self.record.orders])
        ids: dict[str, Id] = {"voucher_id": voucher_id}
        placed = self._expect(first, "POST /vouchers/{voucher_id}/orders", buyer, ids=ids)
        self.record.orders[voucher_id, buyer] = placed["order_id"]
        for queue in ("reactions", "checkins", "orders"):
            self.deployment.aws.remove_messages(queue, 1000)

    def read_profiles(self, first: str, second: str) -> None:
        """Both versions show profiles of which no total falls unless something was taken back."""
        user_id = self.dice.choice(self.record.users)
        for version in (first, second):
            shown = self._expect(version, "GET /users/{user_id}", ADMIN, ids={"user_id": user_id})
            for name in self.record.totals_of(user_id):
                key = user_id, name
                value, before = shown.get(name), self.record.seen.get(key, 0)
                if value is None or (value < before and key not in self.record.fell):
                    self._note(version, f"{name} of user {user_id} fell from {before} to {value}")
                self.record.seen[key] = value or 0

    def _choose_reaction(self) -> tuple[Kind, int, int]:
        kinds = [kind for kind in KINDS if self.record.of_type(kind.type)]
        kind = self.dice.choice(kinds)
        target_id = self.dice.choice(self.record.of_type(kind.type)[:12])
        others = [user for user in self.record.users if (kind.type, user) != ("user", target_id)]
        return kind, target_id, self.dice.choice(others)

    def _react(self, version: str, kind: Kind, target_id: int, user_id: int, *, on: bool) -> None:
        operation = f"{'PUT' if on else 'DELETE'} {kind.route}"
        answer = self._ask(
            version, operation, user_id, ids={f"{kind.type}_id": target_id}, may_use_session=True
        )
        if answer.status == 429:  # changed too quickly
            return
        actors = self.record.on[kind.name, kind.type, target_id]
        changed = (user_id in actors) != on
        if changed:
            (actors.add if on else actors.discard)(user_id)
            if not on:
                self._let_fall(kind, target_id, user_id)
        expected = {kind.state: on, kind.total: len(actors), "changed": changed}
        shown = {name: answer.body.get(name) for name in expected}
        self._check(f"{operation} {target_id} by {version}", shown, expected)

    def _let_fall(self, kind: Kind, target_id: int, user_id: int) -> None:
        if kind.name == "follow":
            self.record.fell |= {(target_id, "followers"), (user_id, "following")}
        else:
            author = self.record.authors[kind.type, target_id]
            self.record.fell.add((author, f"{kind.name}s_received"))

    def _query(self, version: str, kind: Kind, target_id: int, user_id: int) -> None:
        body = {"targets": [{"type": kind.type, "id": str(target_id)}]}
        [item] = self._expect(version, "POST /reactions/query", user_id, body)["items"]
        actors = self.record.on[kind.name, kind.type, target_id]
        shown = [item[kind.total], item["mine"][kind.state]]
        self._check(
            f"{kind.name} of {kind.type} {target_id}", shown, [len(actors), user_id in actors]
        )

    # ------------------------------------------------------------ content

    def write_post(self, first: str, second: str) -> None:
        """A post is created once by two requests with one key, read, edited and read again."""
        author, title = self.dice.choice(self.record.users), self._name("Post")
        created = self._create("POST /posts", first, second, author, {**_POST, "title": title})
        post_id = int(created["id"])
        self.record.authors["post", post_id] = author
        self._check_post(second, post_id, author, title)
        edited = f"{title} (edited)"
        ids = {"post_id": post_id}
        self._expect(second, "PATCH /posts/{post_id}", author, {"title": edited}, ids=ids)
        self.record.titles[post_id] = edited
        self._check_post(first, post_id, author, edited)

    def _check_post(self, version: str, post_id: int, author: int, title: str) -> None:
        self._let_a_second_pass()
        ids = {"post_id": post_id}
        shown = self._expect(version, "GET /posts/{post_id}", self._visitor(version), ids=ids)
        results = [shown["title"], shown["author"]["id"], shown["body"]]
        self._check(f"post {post_id} by {version}", results, [title, str(author), _POST["body"]])

    def delete_post(self, first: str, second: str) -> None:
        """A post is created, liked, and deleted by the other version; then no version has it."""
        author = self.dice.choice(self.record.users)
        fan = self.dice.choice([user for user in self.record.users if user != author])
        post_id = self._expect(first, "POST /posts", author, _POST)["id"]
        ids = {"post_id": post_id}
        self._expect(first, "PUT /posts/{post_id}/likes/me", fan, ids=ids)
        self._expect(second, "DELETE /posts/{post_id}", author, ids=ids)
        self.record.authors["deleted", int(post_id)] = author
        self.record.on["like", "deleted", int(post_id)].add(fan)
        self.record.fell.add((author, "posts"))
        self._let_a_second_pass()
        for version in (first, second):
            answer = self._ask(version, "GET /posts/{post_id}", fan, ids=ids)
            self._check(f"deleted post by {version}", answer.status, 410)

    def write_comment(self, first: str, second: str) -> None:
        """A comment is created once by two requests, listed, and some are deleted."""
        author = self.dice.choice(self.record.users)
        post_id = self.dice.choice(self.record.of_type("post"))
        ids, body = {"post_id": post_id}, {"body": self._name("Comment")}
        operation = "POST /posts/{post_id}/comments"
        created = self._create(operation, first, second, author, body, ids=ids)
        comment_id = int(created["id"])
        self.record.authors["comment", comment_id] = author
        self.record.comments[post_id].add(comment_id)
        shown = self._expect(
            second, "GET /comments/{comment_id}", author, ids={"comment_id": comment_id}
        )
        self._check(f"comment {comment_id} by {second}", shown["body"], body["body"])
        if len(self.record.comments[post_id]) > 5:
            victim = min(self.record.comments[post_id])
            owner = self.record.authors.pop(("comment", victim))
            self.record.authors["deleted", victim] = owner
            self.record.on["like", "deleted", victim] = self.record.on["like", "comment", victim]
            self._expect(second, "DELETE /comments/{comment_id}", owner, ids={"comment_id": victim})
            self.record.comments[post_id].discard(victim)

    def write_review(self, first: str, second: str) -> None:
        """A review is created once by two requests."""
        author, shop_id = self.dice.choice(self.record.users), self.dice.choice(self.record.shops)
        if (author, shop_id) in self._reviewed:
            return
        self._reviewed.add((author, shop_id))
        body = {"score": self.dice.randint(1, 5), "body": self._name("Review")}
        created = self._create(
            "POST /shops/{shop_id}/reviews", first, second, author, body, ids={"shop_id": shop_id}
        )
        review_id = int(created["id"])
        self.record.authors["review", review_id] = author
        shown = self._expect(
            second, "GET /reviews/{review_id}", author, ids={"review_id": review_id}
        )
        self._check(f"review {review_id} by {second}", shown["body"], body["body"])

    def moderate(self, first: str, second: str) -> None:
        """A post is reported once by two requests, hidden by one version and shown by the other."""
        reporter = self.dice.choice(self.record.users)
        post_id = self.dice.choice(self.record.of_type("post"))
        if self.record.authors["post", post_id] == reporter:
            return
        body = {"target": {"type": "post", "id": str(post_id)}, "reason": "spam"}
        report = self._create("POST /reports", first, second, reporter, body)
        ids: dict[str, Id] = {"report_id": report["id"], "post_id": post_id}
        for version, method, hidden in ((first, "PUT", True), (second, "DELETE", False)):
            operation = f"{method} /ops/posts/{{post_id}}/hidden"
            self._expect(version, operation, ADMIN, role="admin", ids=ids)
            self._let_a_second_pass()
            other = second if version == first else first
            author = self.record.authors["post", post_id]
            shown = self._expect(other, "GET /posts/{post_id}", author, ids=ids)
            self._check(f"hidden post by {other}", shown["hidden"], hidden)
        operation, outcome = "PUT /ops/reports/{report_id}/outcome", {"outcome": "dismissed"}
        self._expect(second, operation, ADMIN, outcome, role="admin", ids=ids)
        shown = self._expect(first, "GET /reports/{report_id}", reporter, ids=ids)
        self._check("report", shown["outcome"], "dismissed")

    # ------------------------------------------------------------ users

    def sign_in(self, first: str, second: str) -> None:
        """A code of one version signs in at the other; both know the session, until one ends it."""
        phone, address = self._phone()
        sent = self._expect(first, "POST /auth/codes", None, {"phone": phone}, address=address)
        code = self.deployment.versions[first].api.call("read_code", phone)
        neighbour, _ = self._phone()
        _, elsewhere = self._phone()
        for other, via in ((neighbour, address), (phone, elsewhere)):
            again = self._ask(second, "POST /auth/codes", None, {"phone": other}, address=via)
            self._check(f"another code by {second}", again.status in (202, 429), True)
        body = {"challenge": sent["challenge"], "code": code}
        opened = self._expect(second, "POST /auth/sessions", None, body, address=address)
        user_id, token = int(opened["user"]["id"]), opened["token"]
        self.record.nicknames[user_id] = opened["user"]["nickname"]
        for version in (second, first):
            again = self._ask(version, "POST /auth/codes", None, {"phone": phone}, address=address)
            self._check(f"another code by {version}", again.status in (202, 429), True)
        for version in (first, second):
            shown = self._expect(version, "GET /users/me", None, token=token)
            self._check(f"session by {version}", shown["id"], str(user_id))
            self._expect(version, "PUT /checkins/today", None, token=token)
        if self.dice.random() < 0.5:
            self.record.users.append(user_id)
            self.record.tokens[user_id] = token
            return
        self._expect(second, "DELETE /auth/sessions/current", None, token=token)
        answer = self._ask(first, "GET /users/me", None, token=token)
        self._check(f"ended session by {first}", answer.status, 401)

    def rename(self, first: str, second: str) -> None:
        """A user is renamed by one version, and the other one shows the name."""
        user_id, nickname = self.dice.choice(self.record.users), self._name("n")
        self._expect(first, "PATCH /users/me", user_id, {"nickname": nickname})
        self.record.nicknames[user_id] = nickname
        self._let_a_second_pass()
        shown = self._expect(second, "GET /users/{user_id}", ADMIN, ids={"user_id": user_id})
        self._check(f"nickname by {second}", shown["nickname"], nickname)

    def block(self, first: str, second: str) -> None:
        """A block by one version keeps the other one from a follow; it is taken back."""
        blocker, blocked = self.dice.sample(self.record.users, 2)
        ids = {"user_id": blocked}
        for user_id, other in ((blocker, blocked), (blocked, blocker)):
            actors = self.record.on["follow", "user", other]
            if user_id in actors:
                actors.discard(user_id)
                self.record.fell |= {(other, "followers"), (user_id, "following")}
        self._expect(first, "PUT /users/{user_id}/blocks/me", blocker, ids=ids)
        answer = self._ask(
            second, "PUT /users/{user_id}/followers/me", blocked, ids={"user_id": blocker}
        )
        self._check(f"follow of a blocker by {second}", answer.status, 403)
        self._expect(second, "DELETE /users/{user_id}/blocks/me", blocker, ids=ids)

    def check_in(self, first: str, second: str) -> None:
        """A day is checked in by one version; the other one shows it and repeats it."""
        user_id = self.dice.choice(self.record.users)
        completed = self._expect(first, "PUT /checkins/today", user_id)
        self._let_a_second_pass()
        for operation, query in (
            ("GET /checkins", {"month": completed["month"]}),
            ("PUT /checkins/today", {}),
        ):
            shown = self._expect(second, operation, user_id, query=query)
            self._check(f"{operation} by {second}", shown["days"], completed["days"])

    def visit(self, first: str, second: str) -> None:
        """The id of a visitor by one version is known to the other."""
        visitor = self._expect(first, "POST /visitors", None)["visitor_id"]
        post_id = self.dice.choice(self.record.of_type("post"))
        for version in (second, first):
            answer = self._ask(
                version,
                "GET /posts/{post_id}",
                None,
                ids={"post_id": post_id},
                headers={"x-visitor-id": visitor},
            )
            self._check(f"a visitor's post by {version}", answer.status, 200)

    def read_feed(self, first: str, second: str) -> None:
        """A feed is read page by page, in turns."""
        self.walk("GET /feed", (first, second), self.dice.choice(self.record.users))

    # ------------------------------------------------------------ shops and sales

    def open_shop(self, first: str, second: str) -> None:
        """A shop is opened by one version, found and changed by the other, and has a voucher."""
        body = {**_SHOP, "name": self._name("Shop"), "type_id": "3"}
        created = self._expect(first, "POST /shops", ADMIN, body, role="admin")
        shop_id = int(created["id"])
        self.record.shops.append(shop_id)
        ids = {"shop_id": shop_id}
        body["name"] += " (new name)"
        self._expect(second, "PUT /shops/{shop_id}", ADMIN, body, role="admin", ids=ids)
        self._let_a_second_pass()
        shown = self._expect(first, "GET /shops/{shop_id}", ADMIN, ids=ids)
        self._check(f"shop by {first}", shown["name"], body["name"])
        self.record.vouchers.append(self._offer(first, second, shop_id, _STOCK))

    def add_type(self, first: str, second: str) -> None:
        """A type of shops is created by one version, listed and renamed by the other."""
        body = {**_TYPE, "name": self._name("Type")}
        type_id = self._expect(first, "POST /shop-types", ADMIN, body, role="admin")["id"]
        listed = self._expect(second, "GET /shop-types", ADMIN)["items"]
        self._check(f"type by {second}", body["name"] in [item["name"] for item in listed], True)
        body["name"] += " (new name)"
        ids: dict[str, Id] = {"type_id": type_id}
        self._expect(second, "PUT /shop-types/{type_id}", ADMIN, body, role="admin", ids=ids)
        self._let_a_second_pass()
        listed = self._expect(first, "GET /shop-types", ADMIN)["items"]
        self._check(f"type by {first}", body["name"] in [item["name"] for item in listed], True)

    def lose_places(self, first: str, second: str) -> None:
        """Redis loses when the places of shops were built; a search requests another build."""
        for key in self.deployment.redis.scan_iter("*:shops:places:meta"):
            self.deployment.redis.delete(key)
        query = {"x": 13.4, "y": 52.53, "radius": 5000}
        answer = self.deployment.ask(first, "GET /shops", query=query)
        self._check(f"search for shops by {first}", answer.status, 200)

    def order(self, first: str, second: str) -> None:
        """A unit is ordered once by two requests; orders are shown, cancelled and redeemed."""
        voucher_id = self.dice.choice(self.record.vouchers)
        buyer = self.dice.choice(self.record.users)
        ids = {"voucher_id": voucher_id}
        operation = "POST /vouchers/{voucher_id}/orders"
        placed = [
            self._expect(version, operation, buyer, ids=ids)["order_id"]
            for version in (first, second)
        ]
        known = self.record.orders.get((voucher_id, buyer), placed[0])
        self._check("orders of one buyer", placed, [known, known])
        self.record.orders[voucher_id, buyer] = known
        shown = self._expect(second, "GET /orders/{order_id}", buyer, ids={"order_id": known})
        self._check(f"order by {second}", shown["status"] in ("pending", "success", "used"), True)
        if self.dice.random() < 0.3 and shown["status"] != "used":
            order = {"order_id": known}
            cancelled = self._expect(second, "DELETE /orders/{order_id}", buyer, ids=order)
            self._check(f"cancelled by {second}", cancelled["status"], "cancelled")
            shown = self._expect(first, "GET /orders/{order_id}", buyer, ids=order)
            self._check(f"cancelled order by {first}", shown["status"], "cancelled")
            del self.record.orders[voucher_id, buyer]

    def redeem(self, first: str, second: str) -> None:
        """A code of one version is redeemed once by two requests, the first to the other."""
        for (voucher_id, buyer), order_id in list(self.record.orders.items()):
            ids: dict[str, Id] = {"order_id": order_id, "voucher_id": voucher_id}
            shown = self._expect(first, "GET /orders/{order_id}", buyer, ids=ids)
            if shown["status"] == "success":
                code = self._expect(first, "PUT /orders/{order_id}/code", buyer, ids=ids)
                self._create(
                    "POST /vouchers/{voucher_id}/redemptions",
                    second,
                    first,
                    ADMIN,
                    {"code": code["code"]},
                    role="admin",
                    ids=ids,
                    name="order_id",
                )
                return

    def wait_for_unit(self, first: str, second: str) -> None:
        """A sold-out voucher, a waitlist, a cancelled order, an offer and its acceptance."""
        voucher_id = self._offer(first, second, self.dice.choice(self.record.shops), 1)
        ids: dict[str, Id] = {"voucher_id": voucher_id}
        buyer, waiting = self.dice.sample(self.record.users, 2)
        operation = "POST /vouchers/{voucher_id}/orders"
        order_id = self._expect(first, operation, buyer, ids=ids)["order_id"]
        answer = self._ask(second, operation, waiting, ids=ids)
        self._check(f"sold out by {second}", answer.status, 409)
        self.deployment.drain()
        self._expect(first, "PUT /vouchers/{voucher_id}/waitlist/me", waiting, ids=ids)
        shown = self._expect(second, "GET /vouchers/{voucher_id}/waitlist/me", waiting, ids=ids)
        self._check(f"waitlist by {second}", shown["status"], "waiting")
        self._expect(second, "DELETE /orders/{order_id}", buyer, ids={"order_id": order_id})
        self.deployment.drain()
        self.deployment.run_schedule("schedule/recover_orders")
        for version in (first, second):
            shown = self._expect(
                version, "GET /vouchers/{voucher_id}/waitlist/me", waiting, ids=ids
            )
            self._check(f"offer by {version}", shown["status"], "offered")
        self._let_a_second_pass()
        accepted = self._expect(second, operation, waiting, ids=ids)["order_id"]
        shown = self._expect(first, "GET /orders/{order_id}", waiting, ids={"order_id": accepted})
        self._check(f"accepted by {first}", shown["status"] in ("pending", "success"), True)
        status = self._expect(first, "GET /vouchers/{voucher_id}/status", waiting, ids=ids)
        self._check(f"units left by {first}", status["left"], 0)

    def _offer(self, first: str, second: str, shop_id: int, stock: int) -> int:
        now = datetime.now(UTC)
        body = {
            **_VOUCHER,
            "shop_id": str(shop_id),
            "stock": stock,
            "opens_at": (now - timedelta(hours=1)).isoformat(),
            "closes_at": (now + timedelta(days=1)).isoformat(),
        }
        created = self._create("POST /vouchers", first, second, ADMIN, body, role="admin")
        return int(created["id"])

    def miss(self, first: str, second: str) -> None:
        """What does not exist exists for neither version."""
        self._serial += 1
        for name in ("post", "user", "comment", "review", "shop", "voucher"):
            ids: dict[str, Id] = {f"{name}_id": 10**15 + self._serial}
            for version in (first, second):
                operation = f"GET /{name}s/{{{name}_id}}"
                answer = self._ask(version, operation, ADMIN, ids=ids)
                self._check(f"{operation} of none by {version}", answer.status, 404)

    # ------------------------------------------------------------ operators

    def operate(self, first: str, second: str) -> None:
        """Switches that one version changed are read by the other; a reconciliation of one finds
        nothing."""
        before = self._expect(first, "GET /ops/switches", ADMIN, role="admin")
        changed = {**before["switches"], **_DEFAULT_SWITCHES, "log_sample_rate": 1.0}
        body = {"reason": "A test.", "switches": changed, "version": before["version"]}
        completed = self._expect(first, "PUT /ops/switches", ADMIN, body, role="admin")
        shown = self._expect(second, "GET /ops/switches", ADMIN, role="admin")
        known = shown["switches"].keys() & completed["switches"].keys()  # by both versions
        self._check(
            f"switches by {second}",
            *(
                [answer["version"], {name: answer["switches"][name] for name in sorted(known)}]
                for answer in (shown, completed)
            ),
        )
        self._expect(second, "POST /ops/reconciliations", ADMIN, role="admin")

    # ------------------------------------------------------------ lists

    def walk(
        self,
        operation: str,
        versions: Sequence[str],
        caller: int | None,
        ids: Mapping[str, Id] | None = None,
        **query: Any,
    ) -> list[dict[str, Any]]:
        """Return the items of a list, of which each version gives a page in turn."""
        items: list[dict[str, Any]] = []
        cursor: dict[str, Any] = {}
        for page in range(MAX_PAGES):
            answer = self._expect(
                versions[page % len(versions)],
                operation,
                caller,
                ids=ids or {},
                query={"limit": PAGE, **query, **cursor},
                role="admin" if caller == ADMIN else "user",
            )
            if "items" not in answer:
                return items
            items += answer["items"]
            if answer["next"] is None:
                return items
            cursor = {"cursor": answer["next"]}
        self._note("", f"{operation} has no end")
        return items

    # ------------------------------------------------------------ asking

    def _ask(
        self,
        version: str,
        operation: str,
        caller: int | None = None,
        body: Any = None,
        *,
        may_use_session: bool = False,
        **options: Any,
    ) -> Answer:
        if may_use_session and caller is not None and caller in self.record.tokens:
            options = {**options, "token": self.record.tokens[caller]}
            caller = None
        return self.deployment.ask(version, operation, caller, body, **options)

    def _expect(
        self,
        version: str,
        operation: str,
        caller: int | None = None,
        body: Any = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Return the body of a success; of anything else an empty one, which is noted."""
        answer = self._ask(version, operation, caller, body, **options)
        if not 200 <= answer.status < 300:
            if answer.status < 500:
                self._note(version, f"{operation} is answered {answer.status}: {answer.body}")
            return _Missing()
        return _Missing(answer.body)

    def _create(
        self,
        operation: str,
        first: str,
        second: str,
        caller: int,
        body: Any,
        *,
        name: str = "id",
        **options: Any,
    ) -> dict[str, Any]:
        """Create something by two requests with one idempotency key; return its answer."""
        headers = {"idempotency-key": self._name("key-of-a-test").replace(" ", "-")}
        created, again = (
            self._expect(version, operation, caller, body, headers=headers, **options)
            for version in (first, second)
        )
        self._check(f"{operation} again by {second}", again[name], created[name])
        return created

    def _visitor(self, version: str) -> int | None:
        """Return a caller, or None for an anonymous one."""
        return self.dice.choice((None, ADMIN))

    def _let_a_second_pass(self) -> None:
        """End what processes of the API cache for a second."""
        self.deployment.let_pass(1.1)

    def _name(self, what: str) -> str:
        self._serial += 1
        return f"{what} {self._serial}"

    def _phone(self) -> tuple[str, str]:
        """Return an unused phone number and the address of its owner."""
        self._serial += 1
        serial = self._serial
        return f"+1415555{serial % 10_000:04}", f"198.{serial // 250 % 250}.{serial % 250}.7"

    def _check(self, what: str, result: Any, expected: Any) -> None:
        if result != expected:
            self.deployment.note(f"{what}: {json.dumps(result)}, not {json.dumps(expected)}")

    def _note(self, version: str, problem: str) -> None:
        self.deployment.note(f"{version} {problem}".strip())


class _Missing(dict[str, Any]):
    """The body of an answer; a field that it lacks is 0."""

    def __missing__(self, name: str) -> Any:
        return [] if name == "items" else 0


STEPS: Sequence[Callable[[Traffic, str, str], None]] = (
    Traffic.react,
    Traffic.react,
    Traffic.react,
    Traffic.react_at_once,
    Traffic.change_quickly,
    Traffic.lose_messages,
    Traffic.read_profiles,
    Traffic.write_post,
    Traffic.delete_post,
    Traffic.write_comment,
    Traffic.write_review,
    Traffic.moderate,
    Traffic.sign_in,
    Traffic.rename,
    Traffic.block,
    Traffic.check_in,
    Traffic.visit,
    Traffic.read_feed,
    Traffic.open_shop,
    Traffic.add_type,
    Traffic.lose_places,
    Traffic.order,
    Traffic.order,
    Traffic.redeem,
    Traffic.wait_for_unit,
    Traffic.miss,
    Traffic.operate,
)
