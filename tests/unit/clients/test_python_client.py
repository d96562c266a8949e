"""The Python client, synchronous and asynchronous, on a stand-in for the network."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import re
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

import plaza_client
from cli.paths import ROOT
from plaza_client import (
    AsyncPlaza,
    Known,
    NetworkError,
    Plaza,
    PlazaError,
    ProblemError,
    Retry,
    Totals,
    is_newer,
    problems,
    tag_of,
)
from plaza_client.testing import ExampleTransport

URL = "https://plaza.test"
KEY = "sk_1_secret"
POST = {"type": "post", "id": "12"}
Use = Callable[[Any], Any]


class Run:
    """Calls a client of one kind; ``pauses`` has the seconds that it waited."""

    def __init__(self, is_async: bool) -> None:
        self.is_async = is_async
        self.pauses: list[float] = []
        self.transport = ExampleTransport()

    def __call__(self, use: Use, *, token: str | None = KEY, **options: Any) -> Any:
        """Return the result of ``use(plaza)``; of a list, all its items."""
        options = {"token": token, "transport": self.transport} | options
        if not self.is_async:
            with Plaza(URL, **options) as plaza:
                result = use(plaza)
                return list(result) if isinstance(result, plaza_client.Listed) else result

        async def main() -> Any:
            async with AsyncPlaza(URL, **options) as plaza:
                result = use(plaza)
                if isinstance(result, plaza_client.AsyncListed):
                    return [item async for item in result]
                return await result if inspect.isawaitable(result) else result

        return asyncio.run(main())

    @property
    def requests(self) -> list[httpx.Request]:
        return self.transport.requests


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    made = Run(request.param)

    async def pause(seconds: float) -> None:
        made.pauses.append(seconds)

    monkeypatch.setattr("plaza_client.client.time", SimpleNamespace(sleep=made.pauses.append))
    monkeypatch.setattr("plaza_client.client.anyio", SimpleNamespace(sleep=pause))
    return made


# ---------------------------------------------------------------- operations


def methods(plaza: Plaza | AsyncPlaza) -> dict[str, Callable[..., Any]]:
    """All named methods by the names by which they are called: ``posts.like``."""
    return {
        f"{resource}.{name}": getattr(getattr(plaza, resource), name)
        for resource, field in inspect.getmembers(type(plaza), lambda o: isinstance(o, property))
        for name in vars(type(getattr(plaza, resource)))
        if not name.startswith("_")
    }


@pytest.mark.parametrize("client", [Plaza, AsyncPlaza])
def test_each_operation_of_the_contract_has_one_method_which_returns_its_example(
    client: type[Plaza] | type[AsyncPlaza],
) -> None:
    transport = ExampleTransport()
    plaza: Any = client(URL, token=KEY, transport=transport)

    async def call_all() -> None:
        for name, method in methods(plaza).items():
            needed = {
                item.name: "1"
                for item in inspect.signature(method).parameters.values()
                if item.default is item.empty and item.kind is not item.VAR_KEYWORD
            }
            result = method(**needed)
            if hasattr(result, "first"):
                result = result.first()
            result = await result if inspect.isawaitable(result) else result
            assert transport.names[-1] == name
            sent = transport.requests[-1].headers
            assert ("idempotency-key" in sent) == (
                "KeyedOptions" in str(inspect.signature(method))
            ), name
            [*example] = next(iter(transport._operations[name]["responses"].values())) or {}
            assert [*(result or {})] == example

    asyncio.run(call_all())
    assert sorted(transport.names) == sorted(transport._operations)


def test_parameters_are_encoded_and_lists_joined(run: Run) -> None:
    run(lambda plaza: plaza.shops.search(name="a b&c/ü", limit=2).first())
    assert run.requests[-1].url.raw_path == b"/shops/search?name=a%20b%26c%2F%C3%BC&limit=2"
    run(lambda plaza: plaza.posts.list_by_id(ids=["7", "31"]).first())
    assert run.requests[-1].url.raw_path == b"/posts?ids=7%2C31"
    run(lambda plaza: plaza.posts.get("1/../2?x#y", visitor_id="v1"))
    assert run.requests[-1].url.raw_path == b"/posts/1%2F..%2F2%3Fx%23y"
    assert run.requests[-1].headers["x-visitor-id"] == "v1"
    run(lambda plaza: plaza.posts.get("1"))
    assert "x-visitor-id" not in run.requests[-1].headers


def test_a_text_is_sent_in_utf8_because_its_bytes_are_limited(run: Run) -> None:
    run(lambda plaza: plaza.posts.create_comment("12", {"body": "好"}))
    assert run.requests[-1].content == b'{"body": "\xe5\xa5\xbd"}'
    assert run.requests[-1].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "use",
    [
        lambda plaza: plaza.posts.get(""),
        lambda plaza: plaza.posts.get("."),
        lambda plaza: plaza.react({"id": "12"}, "bookmark"),
        lambda plaza: plaza.unreact({"type": "post"}, "bookmark"),
        lambda plaza: plaza.react({"type": "post", "id": "12"}, ""),
        lambda plaza: plaza.orders.cancel(".."),
        lambda plaza: plaza.posts.get("\ud800"),
        lambda plaza: plaza.posts.create({"kind": "note", "body": "\ud800"}),
        lambda plaza: plaza.posts.create({"kind": float("nan")}),
        lambda plaza: plaza.posts.create({"kind": object()}),
        lambda plaza: plaza.posts.create({}, idempotency_key="ü"),
        lambda plaza: plaza.posts.create({}, idempotency_key="x" * 129),
        lambda plaza: plaza.posts.get("1", timeout_s=0),
        lambda plaza: plaza.posts.get("1", timeout_s=float("inf")),
        lambda plaza: plaza.posts.get("9" * 70_000),
    ],
)
def test_what_cannot_be_sent_is_a_plaza_error_and_nothing_is_sent(run: Run, use: Use) -> None:
    with pytest.raises(PlazaError) as refused:
        run(use)
    assert type(refused.value) is PlazaError
    assert run.requests == []


@pytest.mark.parametrize("url", ["plaza.test", "ftp://plaza.test", "https://", "http://x:y", ""])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(PlazaError, match="https"):
        Plaza(url)


@pytest.mark.parametrize("values", [{"attempts": 0}, {"base_s": -1}, {"max_delay_s": float("nan")}])
def test_a_limit_that_no_timer_has_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(PlazaError):
        Retry(**values)


@pytest.mark.parametrize("kind", ["like", "collect", "bookmark"])
def test_a_reaction_of_any_kind_is_set_and_taken_back(run: Run, kind: str) -> None:
    post = {**run(lambda plaza: plaza.posts.get("12")), **POST}
    reacted = run(lambda plaza: plaza.act_as("7").react(post, kind))
    assert (reacted["on"], reacted["total"]) == (True, 42)
    assert run(lambda plaza: plaza.unreact(POST, kind, timeout_s=1))["exact"] is True
    assert [(request.method, request.url.path) for request in run.requests[1:]] == [
        ("PUT", f"/targets/post/12/reactions/{kind}/me"),
        ("DELETE", f"/targets/post/12/reactions/{kind}/me"),
    ]
    assert run.requests[1].headers["plaza-user"] == "7"


# ---------------------------------------------------------------- callers


def test_a_key_acts_for_a_user_and_its_own_client_does_not(run: Run) -> None:
    run(lambda plaza: (plaza.act_as("my-app|ann"), plaza.act_as("7").posts.like("12"))[1])
    run(lambda plaza: plaza.posts.get("12"))
    acted, read = (request.headers for request in run.requests)
    assert (acted["authorization"], acted["plaza-user"]) == (f"Bearer {KEY}", "7")
    assert "plaza-user" not in read


def test_only_a_key_acts_for_a_user() -> None:
    for token in (None, "session"):
        with pytest.raises(PlazaError, match="key of a server"):
            Plaza(URL, token=token).act_as("7")


@pytest.mark.parametrize("user", ["", " 7", "7\r\nx: y", "ü", "7\n"])
def test_a_user_that_no_header_can_have_is_refused(user: str) -> None:
    plaza = Plaza(URL, token=KEY)
    with pytest.raises(PlazaError):
        plaza.act_as(user)
    with pytest.raises(PlazaError):
        plaza.with_token(user)


def test_another_token_acts_for_no_user_of_the_key(run: Run) -> None:
    run(lambda plaza: plaza.act_as("7").with_token("session").posts.get("12"))
    assert run.requests[-1].headers["authorization"] == "Bearer session"
    assert "plaza-user" not in run.requests[-1].headers
    run(lambda plaza: plaza.with_token(None).posts.get("12"))
    assert "authorization" not in run.requests[-1].headers


def test_no_text_of_a_client_or_of_its_errors_has_the_token(run: Run) -> None:
    assert KEY not in repr(Plaza(URL, token=KEY).act_as("7"))
    run.transport.fail("posts.get")
    with pytest.raises(NetworkError) as failed:
        run(lambda plaza: plaza.posts.get("12", retry=Retry(attempts=1)))
    assert KEY not in repr(failed.value) + repr(failed.value.__cause__)


# ---------------------------------------------------------------- retries


def test_all_attempts_of_a_creation_have_one_key(run: Run) -> None:
    run.transport.refuse("posts.create", "unavailable", times=1)
    run.transport.fail("posts.create", times=1)
    run.transport.fail("posts.create", httpx.ReadTimeout("late"), times=1)
    body = {"kind": "note", "title": "Hello", "body": "First post"}
    assert run(lambda plaza: plaza.posts.create(body))["id"] == "9000001"
    assert len({request.headers["idempotency-key"] for request in run.requests}) == 1
    assert [json.loads(request.content) for request in run.requests] == [body] * 4
    assert len({request.headers["x-request-id"] for request in run.requests}) == 1
    run(lambda plaza: plaza.posts.create(body))
    assert run.requests[-1].headers["idempotency-key"] != run.requests[0].headers["idempotency-key"]
    run(lambda plaza: plaza.posts.create(body, idempotency_key="mine"))
    assert run.requests[-1].headers["idempotency-key"] == "mine"


def test_an_attempt_waits_for_retry_after_and_a_random_delay_more(run: Run) -> None:
    run.transport.refuse("posts.like", "too-many-requests", retry_after_s=7, times=2)
    run(lambda plaza: plaza.posts.like("12"), retry=Retry(base_s=0.5))
    first, second = run.pauses
    assert 7 <= first <= 7.5
    assert 7 <= second <= 8
    assert len({*run.pauses}) == 2


def test_a_longer_retry_after_than_the_limit_ends_the_retries(run: Run) -> None:
    run.transport.refuse("posts.like", "too-many-requests", retry_after_s=21)
    with pytest.raises(problems.TooManyRequests) as refused:
        run(lambda plaza: plaza.posts.like("12"))
    assert refused.value.retry_after_s == 21
    assert len(run.requests) == 1


def test_the_last_failure_is_raised(run: Run) -> None:
    run.transport.refuse("posts.like", "unavailable", times=3)
    run.transport.fail("posts.like")
    with pytest.raises(NetworkError) as failed:
        run(lambda plaza: plaza.posts.like("12"))
    assert len(run.requests) == 4
    assert len(run.pauses) == 3
    assert failed.value.request_id == run.requests[-1].headers["x-request-id"]
    assert isinstance(failed.value.__cause__, httpx.ConnectError)


@pytest.mark.parametrize("slug", ["gone", "forbidden", "internal"])
def test_what_stays_refused_is_not_repeated(run: Run, slug: str) -> None:
    run.transport.refuse("posts.like", slug)
    with pytest.raises(ProblemError):
        run(lambda plaza: plaza.posts.like("12"))
    assert len(run.requests) == 1


@pytest.mark.parametrize(
    ("name", "use", "attempts"),
    [
        ("auth.send_code", lambda plaza: plaza.auth.send_code({"phone": "+1"}), 1),
        ("users.update_my_profile", lambda plaza: plaza.users.update_my_profile({}), 1),
        ("reactions.query", lambda plaza: plaza.reactions.query({"targets": []}), 4),
        ("vouchers.place_order", lambda plaza: plaza.vouchers.place_order("9"), 4),
        ("posts.unlike", lambda plaza: plaza.posts.unlike("9"), 4),
        ("reactions.remove", lambda plaza: plaza.unreact(POST, "bookmark"), 4),
        ("posts.get", lambda plaza: plaza.posts.get("9"), 4),
    ],
)
def test_only_what_has_one_effect_is_repeated(run: Run, name: str, use: Use, attempts: int) -> None:
    run.transport.fail(name)
    with pytest.raises(NetworkError):
        run(use)
    assert run.transport.names == [name] * attempts


def test_a_buyer_waits_at_the_pace_of_the_api(run: Run) -> None:
    pending = {"order_id": "5", "voucher_id": "9", "status": "pending", "reason": None}
    run.transport.answer("vouchers.place_order", pending, status=202, headers={"retry-after": "2"})
    run.transport.answer("orders.get", pending, headers={"retry-after": "3"}, times=1)
    run.transport.answer("orders.get", pending, times=1)
    run.transport.answer("orders.get", pending | {"status": "success"}, times=1)
    assert run(lambda plaza: plaza.buy("9"))["status"] == "success"
    assert run.pauses == [2, 3, 1]
    run.transport.answer("vouchers.place_order", pending | {"status": "failed"})
    assert run(lambda plaza: plaza.buy("9"))["status"] == "failed"
    assert run.pauses == [2, 3, 1]


# ---------------------------------------------------------------- errors


def test_a_problem_has_the_class_of_its_slug(run: Run) -> None:
    run.transport.refuse("vouchers.place_order", "sold-out")
    with pytest.raises(problems.SoldOut) as refused:
        run(lambda plaza: plaza.buy("9"))
    assert (refused.value.slug, refused.value.status) == ("sold-out", 409)
    assert str(refused.value) == refused.value.detail


def test_a_problem_has_what_is_wrong_with_each_field(run: Run) -> None:
    run.transport.refuse("posts.create", "invalid-request")
    with pytest.raises(problems.InvalidRequest) as refused:
        run(lambda plaza: plaza.posts.create({}))
    assert refused.value.field("body") == "is a text"
    assert refused.value.field("title") is None


@pytest.mark.parametrize(
    ("status", "content", "slug"),
    [
        (400, b'{"type": "https://plaza.example/problems/of-tomorrow"}', "of-tomorrow"),
        (400, b'{"type": "https://a.example/docs/problems#of-tomorrow"}', "of-tomorrow"),
        (400, b'{"type": "https://a.example/b", "slug": "of-tomorrow"}', "of-tomorrow"),
        (502, b"<html>Bad gateway</html>", "about:blank"),
        (500, b"", "about:blank"),
        (500, b"[1]", "about:blank"),
        (500, b'{"type": 7, "title": null, "errors": null}', "7"),
    ],
)
def test_a_refusal_of_any_form_is_a_problem(
    run: Run, status: int, content: bytes, slug: str
) -> None:
    run.transport = httpx.MockTransport(  # type: ignore[assignment]
        lambda _: httpx.Response(status, content=content, headers={"x-request-id": "server"})
    )
    with pytest.raises(ProblemError) as refused:
        run(lambda plaza: plaza.posts.get("12", retry=Retry(attempts=1)))
    assert type(refused.value) is ProblemError
    assert (refused.value.slug, refused.value.status) == (slug, status)
    assert refused.value.request_id == "server"
    assert refused.value.errors == ()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (403, problems.Forbidden),
        (404, problems.NotFound),
        (413, ProblemError),
        (429, problems.TooManyRequests),
        (500, problems.Internal),
        (503, problems.Unavailable),
    ],
)
def test_a_refusal_of_the_gateway_itself_has_the_class_of_its_status(
    run: Run, status: int, kind: type[ProblemError]
) -> None:
    """Given the body that API Gateway sends before a function is invoked."""
    run.transport = httpx.MockTransport(  # type: ignore[assignment]
        lambda _: httpx.Response(status, json={"message": "Not now"})
    )
    with pytest.raises(ProblemError) as refused:
        run(lambda plaza: plaza.posts.get("12", retry=Retry(attempts=1)))
    assert type(refused.value) is kind
    assert (refused.value.status, refused.value.detail) == (status, "Not now")


def test_a_response_that_is_not_json_is_a_network_error(run: Run) -> None:
    run.transport = httpx.MockTransport(  # type: ignore[assignment]
        lambda _: httpx.Response(200, content=b"<html>")
    )
    with pytest.raises(NetworkError, match="not JSON"):
        run(lambda plaza: plaza.posts.get("12"))
    assert len(run.pauses) == 3


@pytest.mark.parametrize(
    ("text", "seconds"), [("2", 2), ("-1", None), ("nan", None), ("inf", None), ("Thu, 1", None)]
)
def test_a_retry_after_that_is_no_number_is_none(run: Run, text: str, seconds: Any) -> None:
    run.transport.answer("posts.like", {}, status=429, headers={"retry-after": text})
    with pytest.raises(ProblemError) as refused:
        run(lambda plaza: plaza.posts.like("12", retry=Retry(attempts=1)))
    assert refused.value.retry_after_s == seconds


def test_a_reply_has_what_the_headers_say(run: Run) -> None:
    headers = {"cache-control": "public, max-age=4", "x-request-id": "server", "retry-after": "1"}
    run.transport.answer("totals.get", {"items": []}, headers=headers)
    reply = run(lambda plaza: plaza.send("GET", "/totals", query={"of": ["post:1"]}))
    assert (reply.status, reply.body, reply.request_id) == (200, {"items": []}, "server")
    assert (reply.max_age_s, reply.retry_after_s) == (4, 1)


def test_a_change_names_the_version_that_was_read(run: Run) -> None:
    tags, sent = iter(['"1"', '"2"', 'W/"3"']), []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"id": "7"}, headers={"etag": next(tags)})

    run.transport = httpx.MockTransport(answer)  # type: ignore[assignment]
    read = run(lambda plaza: plaza.users.get_my_profile())
    assert read == {"id": "7"}
    tag = tag_of(read)
    changed = run(lambda plaza: plaza.users.update_my_profile({"nickname": "ada"}, if_match=tag))
    weak = run(lambda plaza: plaza.posts.get("1"))
    assert [request.headers.get("if-match") for request in sent] == [None, '"1"', None]
    assert (tag_of(changed), tag_of(weak), tag_of({})) == ('"2"', None, None)


def test_a_raw_request_is_sent_once_as_it_is(run: Run) -> None:
    run.transport.refuse("posts.create", "unavailable")
    headers = {"Authorization": "Basic x", "content-type": "text/plain"}
    response = run(lambda plaza: plaza.send_once("POST", "/posts", content=b"{", headers=headers))
    assert (response.status_code, len(run.requests)) == (503, 1)
    assert run.requests[0].content == b"{"
    assert run.requests[0].headers.get_list("authorization") == ["Basic x"]


# ---------------------------------------------------------------- lists


PAGES = {
    None: {"items": [{"id": "4"}, {"id": "3"}], "next": "c1"},
    "c1": {"items": [], "next": "c2"},
    "c2": {"items": [{"id": "2"}], "next": None},
}


@pytest.fixture
def feed(run: Run) -> Run:
    """Given a feed of three pages, one of them empty."""
    requests = run.transport.requests

    def respond(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json=PAGES[request.url.params.get("cursor")])

    run.transport.handler = respond
    return run


def test_a_list_is_the_items_of_all_its_pages(feed: Run) -> None:
    items = feed(lambda plaza: plaza.feed.list_posts(limit=2))
    assert [item["id"] for item in items] == ["4", "3", "2"]
    assert [str(request.url.query, "ascii") for request in feed.requests] == [
        "limit=2",
        "limit=2&cursor=c1",
        "limit=2&cursor=c2",
    ]


def test_nothing_of_a_list_is_read_before_it_is_asked_for(feed: Run) -> None:
    feed(lambda plaza: (plaza.feed.list_posts(), None)[1])
    assert feed.requests == []
    page = feed(lambda plaza: plaza.feed.list_posts().first())
    assert (page["next"], len(feed.requests)) == ("c1", 1)
    assert feed(lambda plaza: plaza.feed.list_posts(cursor="c2").first())["next"] is None


def test_a_list_can_be_read_page_by_page_and_again(feed: Run) -> None:
    def read(plaza: Any) -> Any:
        listed = plaza.feed.list_posts()
        if not feed.is_async:
            return [len(page["items"]) for page in [*listed.pages(), *listed.pages()]]

        async def read_all() -> list[int]:
            assert (await listed)["next"] == "c1"
            return [len(p["items"]) for _ in range(2) async for p in listed.pages()]

        return read_all()

    assert feed(read) == [2, 0, 1, 2, 0, 1]


# ---------------------------------------------------------------- totals


@pytest.mark.parametrize(
    ("new", "known", "expected"),
    [
        (Known(1, None), None, True),
        (Known(1, "b"), Known(9, "a"), True),
        (Known(9, "a"), Known(1, "b"), False),
        (Known(9, "a"), Known(1, "a"), False),
        (Known(9, None), Known(1, "a"), False),
        (Known(1, "a"), Known(1, None), True),
        (Known(2, None), Known(1, None), True),
        (Known(1, None), Known(1, None), False),
        (Known(1, "Z"), Known(1, "a"), False),  # by code units, as in all clients
    ],
)
def test_of_two_totals_the_greater_token_has_the_newer_one(
    new: Known, known: Known | None, expected: bool
) -> None:
    assert is_newer(new, known) is expected


def test_totals_never_go_back_in_whatever_order_answers_arrive() -> None:
    answers: list[dict[str, Any]] = [
        {"id": "12", "likes": n * 10, "likes_at": f"{n:03}", "comments": 1} for n in range(100)
    ]
    random.Random(7).shuffle(answers)
    totals, seen = Totals(), [0]
    for answer in answers:
        totals.offer("post", answer)
        seen.append(totals.of("post", "12")["likes"].total)
    assert seen == sorted(seen)
    assert seen[-1] == 990
    assert totals.of("review", "12") == {}


def test_totals_of_kinds_are_read_from_reactions_each_by_its_own_token() -> None:
    totals = Totals()
    reactions = {"like": {"total": 9, "at": "b"}, "bookmark": {"total": 4, "at": "b"}}
    assert totals.offer("post", {"id": "12", "likes": 9, "likes_at": "b", "reactions": reactions})
    reactions = {"like": {"total": 7, "at": "a"}, "bookmark": {"total": 5, "at": "c", "mine": True}}
    assert totals.offer("post", {"id": "12", "reactions": reactions})
    assert not totals.offer("post", {"id": "12", "reactions": {}})
    assert totals.of("post", "12") == {"likes": Known(9, "b"), "bookmark": Known(5, "c")}


def test_totals_of_the_last_targets_are_kept_also_by_many_threads() -> None:
    totals = Totals(max_targets=50)

    def offer(first: int) -> None:
        for number in range(first, 1_000, 4):
            totals.offer("post", {"id": str(number), "likes": number, "likes_at": None})

    threads = [threading.Thread(target=offer, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(bool(totals.of("post", str(number))) for number in range(1_000)) == 50
    assert totals.offer("post", {"id": "1", "likes": 4, "likes_at": None})


# ---------------------------------------------------------------- the stand-in


def test_the_stand_in_refuses_an_anonymous_write_as_the_api_does(run: Run) -> None:
    with pytest.raises(problems.Unauthenticated):
        run(lambda plaza: plaza.posts.like("12"), token=None)
    assert run(lambda plaza: plaza.posts.get("12"), token=None)["id"] == "9000001"


def test_the_stand_in_plays_no_answer_that_the_contract_does_not_have() -> None:
    transport = ExampleTransport()
    with pytest.raises(LookupError, match="sold-out"):
        transport.refuse("posts.like", "sold-out")
    for plan in (transport.answer, transport.fail):
        with pytest.raises(LookupError, match="lke"):
            plan("posts.lke")


def test_the_stand_in_does_not_know_other_paths(run: Run) -> None:
    with pytest.raises(problems.NotFound):
        run(lambda plaza: plaza.send("GET", "/nowhere"))
    assert run.transport.names == [""]


def test_an_answer_of_the_stand_in_is_played_as_often_as_planned(run: Run) -> None:
    run.transport.answer("posts.like", status=202)
    run.transport.answer("posts.like", {"liked": False}, times=1)
    assert run(lambda plaza: plaza.posts.like("12")) == {"liked": False}
    for _ in range(2):
        assert run(lambda plaza: plaza.posts.like("12"))["exact"] is False


# ---------------------------------------------------------------- the documents


def test_the_code_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    transport = ExampleTransport()
    monkeypatch.setattr(
        httpx.HTTPTransport, "handle_request", lambda _, request: transport.handle_request(request)
    )
    monkeypatch.setattr("plaza_client.client.time", SimpleNamespace(sleep=lambda _: None))
    blocks = re.findall(
        r"^```py\n(.*?)^```", (ROOT / "clients/python/README.md").read_text(), re.MULTILINE | re.S
    )
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 6
    assert {
        "posts.like",
        "reactions.set",
        "feed.list_posts",
        "posts.create",
        "vouchers.place_order",
    } <= {*transport.names}
    signed = names["webhook"].sign(b"{}", "msg_1")
    assert [names["receive"](body, signed) for body in (b"{}", b"{ }")] == [204, 400]
