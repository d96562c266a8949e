"""The operators' console on the deployed stack, in a browser: the main journey of each page."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from local.audit.backlog import wait_until_quiet
from local.load.town import make_voucher
from local.stack.stack import Stack
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import REACTIONS
from tests.e2e.browser import AppPage, confirm, find_wide, has_any, needs_browser
from tests.e2e.client import Client, wait_until
from tests.e2e.conftest import OpenApp
from tests.support.depth import choose
from tests.support.node import needs_npm_packages

pytestmark = [needs_npm_packages, needs_browser]
OPERATOR = 6_859_999
LIKES = 40
_ids = count(6_850_001)


@pytest.fixture
def open_console(open_app: OpenApp) -> Callable[..., AppPage]:
    """``open_console(path, refused)`` shows a page to an operator."""

    def open_one(path: str, refused: tuple[int, ...] = (), **options: Any) -> AppPage:
        return open_app(path, OPERATOR, refused, role="admin", site="/console", **options)

    return open_one


@pytest.fixture
def operator(base_url: str, sign_in: Callable[..., str]) -> Client:
    return Client(base_url, sign_in(OPERATOR, role="admin"))


def test_a_user_without_the_role_is_refused_and_an_operator_gets_in(open_app: OpenApp) -> None:
    app = open_app("/queues", next(_ids), site="/console")
    page = app.page
    expect(page.get_by_role("alert")).to_contain_text("no operator")
    expect(page.get_by_role("navigation").get_by_role("listitem")).to_have_count(0)
    app.check_accessibility()
    page.get_by_role("button", name="Sign in as an operator").click()
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    expect(page.get_by_role("row", name="reactions")).to_be_visible()
    page.get_by_role("link", name="Moderation").click()
    expect(page.get_by_role("heading", name="Moderation")).to_be_focused()
    page.set_viewport_size({"width": 1200, "height": 800})
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def like_often(post: int, user: Callable[[int], Client]) -> None:
    """Make a post one of the most active targets, also on a stack that others use."""
    for _ in range(LIKES):
        assert user(next(_ids))("PUT", f"/posts/{post}/likes/me").status == 200


def wait_until_breakers_are_closed(operator: Client) -> None:
    """Wait for processes that met an outage of another test: schedules run once a minute."""

    def are_closed() -> bool:
        return not any(item["open_in"] for item in operator("GET", "/ops/breakers").json["items"])

    wait_until("all breakers are closed", are_closed, timeout_s=90)


@pytest.mark.quiet
def test_the_overview_shows_the_audit_and_the_state_of_all_parts(
    open_console: Callable[..., AppPage],
    operator: Client,
    user: Callable[[int], Client],
    add: Callable[..., int],
    stack: Stack,
) -> None:
    post = add()
    like_often(post, user)
    user(next(_ids))("GET", f"/posts/{post}")
    stack.invoke("SampleGauges", {})
    wait_until_breakers_are_closed(operator)
    app = open_console("/")
    page = app.page
    audit = page.get_by_role("region", name="Live audit")
    expect(audit).to_contain_text("No drift")
    for store in ("Redis", "MySQL", "SQS"):
        expect(page.locator(".stat", has_text=store).first).to_contain_text("upbreakers closed")
    expect(page.get_by_role("link", name=re.compile("^Dead letters"))).to_be_visible()
    expect(page.locator(".stat", has_text="Outboxes")).to_contain_text("oldest entry")
    expect(page.get_by_role("figure")).to_have_count(9)
    expect(page.get_by_role("figure", name="Drift")).to_contain_text("live audit 0")
    visitors = page.get_by_role("figure", name="Visitors a day")
    expect(visitors).to_contain_text(re.compile(r"visitors [1-9]"))
    # Open already when a test before left a schedule that failed: a click would close it.
    schedules = page.locator("details", has_text=re.compile("schedules? ran"))
    schedules.evaluate("shown => { shown.open = true; }")
    expect(page.get_by_role("row", name="sample_gauges")).to_contain_text("succeeded")
    page.get_by_text("most active targets").click()
    expect(page.get_by_role("row", name=f"like of post {post}")).to_be_visible()
    app.check_accessibility()


@pytest.mark.quiet
def test_drift_is_shown_until_a_reconciliation_repairs_it(
    open_console: Callable[..., AppPage],
    user: Callable[[int], Client],
    add: Callable[..., int],
    rows: Callable[..., Any],
) -> None:
    post = add()
    like_often(post, user)
    saved = (
        f"SELECT COUNT(*) FROM counter WHERE target_id = %s AND kind = 'like' AND total = {LIKES}"
    )
    wait_until("the likes are saved", lambda: rows(saved, post) == ((1,),))
    rows("UPDATE counter SET total = total + 2 WHERE target_id = %s AND kind = 'like'", post)
    app = open_console("/")
    page = app.page
    expect(page.get_by_role("region", name="Live audit")).to_contain_text("1 target differs")
    app.check_accessibility()
    page.get_by_role("link", name="Reconciliation", exact=True).click()
    page.get_by_role("button", name="Start one").click()
    expect(page.get_by_text("A reconciliation has started.")).to_be_visible()
    run = page.locator(".run").first
    expect(run.get_by_role("row", name=f"post {post}")).to_contain_text("counter")
    expect(run.get_by_role("heading")).to_contain_text("repaired")
    expect(page.get_by_role("button", name="Start one")).to_be_enabled()
    app.check_accessibility()
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("region", name="Live audit")).to_contain_text("No drift")


def test_a_dead_letter_is_read_and_redriven(
    open_console: Callable[..., AppPage],
    dead_reactions: Callable[..., None],
    add: Callable[..., int],
    rows: Callable[..., Any],
) -> None:
    post = add()
    event = ReactionEvent(ReactionKey("post", post, "like", OPERATOR), True, time.time_ns() // 1000)
    dead_reactions(REACTIONS.encode(event))
    dead_reactions('{"protocol": 2, "kind": "like", "phone": "+14155550188"}')
    app = open_console("/queues", refused=(409,))
    page = app.page
    row = page.get_by_role("row", name="reactions")
    expect(row.get_by_role("cell").last.locator(".badge")).to_have_text("2")
    app.check_accessibility()
    row.get_by_role("link", name="reactions").click()
    expect(page.get_by_role("article").filter(has_text='"phone": "…"')).to_be_visible()
    app.check_accessibility()
    letter = page.get_by_role("article").filter(has_text=str(post))
    letter.get_by_role("button", name="Redrive").click()
    expect(page.get_by_role("status").filter(has_text="moved")).to_have_text(
        "1 moved back to the queue, 1 left."
    )
    expect(letter).to_have_count(0)
    saved = "SELECT COUNT(*) FROM reaction WHERE target_id = %s AND state = 1"
    wait_until("the event is stored", lambda: rows(saved, post) == ((1,),))
    app.open("/queues/orders")
    expect(page.get_by_role("alert")).to_contain_text(re.compile("Request c?[0-9a-f]{8}"))


def test_the_largest_keys_are_listed(
    open_console: Callable[..., AppPage], operator: Client, stack: Stack
) -> None:
    def is_scanned() -> bool:
        stack.invoke("ScanKeys", {})
        return operator("GET", "/ops/keys").json["scanned_at"] is not None

    wait_until("the keys are scanned", is_scanned)
    app = open_console("/keys")
    large = app.page.get_by_role("region", name="Large keys")
    expect(large.get_by_role("row").nth(1)).to_contain_text("B")
    app.check_accessibility()


def test_a_sale_shows_what_became_of_its_units(
    open_console: Callable[..., AppPage],
    operator: Client,
    user: Callable[[int], Client],
) -> None:
    title = f"Tea {next(_ids)}"
    shop_id = operator("POST", "/shops", {"name": "Linden Food"}).json["id"]
    body = make_voucher(shop_id, time.time(), stock=3, open_s=1800) | {"title": title}
    voucher = operator("POST", "/vouchers", body).json["id"]
    app = open_console("/sales")
    page = app.page
    sale = page.get_by_role("region", name=title)
    expect(sale.locator(".left dd")).to_have_text("3")
    user(next(_ids))("POST", f"/vouchers/{voucher}/orders")
    expect(sale.locator(".sold dd")).to_have_text("1")
    expect(sale.locator(".left dd")).to_have_text("2")
    app.check_accessibility()
    page.get_by_role("link", name="Coming").click()
    expect(page.get_by_role("link", name="Coming")).to_have_attribute("aria-current", "page")
    expect(sale).to_have_count(0)


@pytest.mark.quiet
def test_a_level_is_set_with_a_reason_and_taken_back(
    open_console: Callable[..., AppPage], operator: Client
) -> None:
    app = open_console("/switches", refused=(400,))
    page = app.page
    page.get_by_label("Relieved").check()
    page.get_by_role("button", name="Set the level").click()
    expect(page.locator(".wrong")).to_have_text("This must not be empty.")
    page.get_by_label("Reason").fill("A test of the console.")
    page.get_by_role("button", name="Set the level").click()
    change = page.get_by_role("region", name="Changes").get_by_role("row").nth(1)
    expect(change).to_contain_text("Relieved")
    assert operator("GET", "/ops/switches").json["level"] == "relieved"
    app.check_accessibility()
    page.get_by_label("Normal").check()
    page.get_by_label("Reason").fill("It is over.")
    page.get_by_role("button", name="Set the level").click()
    expect(change).to_contain_text("It is over.")
    assert operator("GET", "/ops/switches").json["level"] == "normal"


def test_a_report_is_upheld_after_its_post_is_hidden(
    open_console: Callable[..., AppPage], user: Callable[[int], Client], operator: Client
) -> None:
    author, reader = user(next(_ids)), user(next(_ids))
    post = author("POST", "/posts", {"kind": "note", "title": "Buy now", "body": "Cheap."}).json
    target = {"type": "post", "id": post["id"]}
    report = reader("POST", "/reports", {"target": target, "reason": "spam"}).json["id"]
    app = open_console("/moderation")
    page = app.page
    shown = page.get_by_role("article", name=f"Report {report}")
    expect(shown).to_contain_text("Buy now")
    shown.get_by_role("button", name="Hide").click()
    expect(shown).to_contain_text("hidden")
    wait_until_hidden(author, post["id"], hidden=True)
    app.check_accessibility()
    shown.get_by_role("button", name="Show").click()
    expect(shown.get_by_role("button", name="Hide")).to_be_visible()
    shown.get_by_role("button", name="Uphold").click()
    expect(shown).to_have_count(0)
    assert reader("GET", f"/reports/{report}").json["outcome"] == "upheld"
    wait_until_hidden(author, post["id"], hidden=False)


def wait_until_hidden(author: Client, post_id: str, *, hidden: bool) -> None:
    """Wait for an answer that a process did not read in the last second."""
    wait_until(
        f"hidden is {hidden}",
        lambda: author("GET", f"/posts/{post_id}").json["hidden"] is hidden,
    )


def test_an_erasure_is_listed(
    open_console: Callable[..., AppPage], user: Callable[[int], Client]
) -> None:
    leaving = next(_ids)
    assert user(leaving)("DELETE", "/users/me").status < 300
    app = open_console("/erasures")
    expect(app.page.get_by_role("row", name=str(leaving))).to_contain_text("account closed")
    app.check_accessibility()


def test_a_page_stops_reading_while_it_is_hidden_and_slows_down_after_failures(
    open_console: Callable[..., AppPage], base_url: str
) -> None:
    app = open_console("/moderation")
    page = app.page
    page.clock.install()
    reads: list[str] = []

    def record(sent: Request) -> None:
        if sent.url.endswith("/ops/queues"):
            reads.append(sent.url)

    page.on("request", record)
    page.get_by_role("link", name="Queues").click()
    row = page.get_by_role("row", name="reactions")
    expect(row).to_be_visible()
    show(page, hidden=True)
    page.clock.run_for(60_000)
    assert len(reads) <= 2
    page.route(f"{base_url}/ops/queues", lambda route: route.abort())
    before = len(reads)
    show(page, hidden=False)
    expect(page.get_by_role("alert")).to_contain_text("No connection")
    expect(page.get_by_role("alert")).to_contain_text("Request ")
    expect(row).to_be_visible()  # what was read before
    page.clock.run_for(9_000)
    assert len(reads) == before + 1  # after 10 s, not 5
    app.check_accessibility()
    page.unroute(f"{base_url}/ops/queues")
    page.clock.run_for(2_000)
    expect(page.get_by_role("alert")).to_have_count(0)
    assert [error for error in app.errors if "ERR_FAILED" not in error] == []
    app.errors.clear()


def show(page: Page, *, hidden: bool) -> None:
    """Hide the page as another tab would, or show it again."""
    page.evaluate(
        "(hidden) => { Object.defineProperty(document, 'hidden', {value: hidden,"
        " configurable: true}); document.dispatchEvent(new Event('visibilitychange')); }",
        hidden,
    )


def test_an_audit_is_in_transit_until_all_changes_have_arrived(
    open_console: Callable[..., AppPage],
) -> None:
    app = open_console("/break-it")
    page = app.page
    report = {
        "clean": False,
        "quiet": False,
        "targets": 116,
        "drift": 0,
        "others": 9,
        "dead": 0,
        "pending": 9,
        "queued": 11,
        "queues": [{"name": "reactions", "messages": 11, "retry_s": 300}],
        "differences": ["post 1: the counter is 1 late"],
    }
    held: list[Route] = []
    sent: list[bool] = []

    def answer(route: Route) -> None:
        sent.append(json.loads(route.request.post_data or "{}")["wait"])
        if sent[-1]:
            held.append(route)
        else:
            route.fulfill(json=report)

    page.route("**/local/audit", answer)
    page.get_by_role("button", name="Audit everything").click()
    full = page.get_by_role("region", name="Full audit")
    expect(full).to_contain_text("In transit: 116 targets")
    expect(full).to_contain_text("reactions: 11 messages. One that failed is tried again within 5")
    expect(full).not_to_contain_text("Not clean")
    expect(page.get_by_role("button", name="Audit everything")).to_be_disabled()
    app.check_accessibility()
    wait_until("the page waits", lambda: has_any(page, held))
    quiet = {"quiet": True, "pending": 0, "queued": 0}
    held.pop().fulfill(json=report | quiet)
    expect(full).to_contain_text("Not clean")
    expect(full.get_by_role("link", name="Runbook drift")).to_be_visible()
    assert sent == [False, True]
    page.unroute("**/local/audit")
    page.get_by_role("button", name="Audit everything").click()
    expect(full).to_contain_text("drift 0")


def test_an_audit_that_compared_nothing_is_no_verdict(
    open_console: Callable[..., AppPage], base_url: str, user: Callable[[int], Client]
) -> None:
    """Given an answer of the API in which Redis has loaded no target since an outage. Drift of a
    target that it has lost since is one."""
    author = user(next(_ids))
    post_id = author("POST", "/posts", {"kind": "note", "title": "T", "body": "B"}).json["id"]
    assert author("PUT", f"/posts/{post_id}/likes/me").status == 200
    app = open_console("/")
    page = app.page

    drift = {"drift": 0, "differing": 0}

    def unload(route: Route) -> None:
        answer = route.fetch()
        audit = answer.json()
        for item in audit["items"]:
            item |= {"state": "not-loaded", "total": None, "outbox": 0}
        audit["totals"] |= {"total": 0, "rows": 0, "counter": 0} | drift
        route.fulfill(response=answer, json=audit)

    page.route(f"{base_url}/ops/audit*", unload)
    page.reload()
    audit = page.get_by_role("region", name="Live audit")
    expect(audit).to_have_class("verdict unknown")
    expect(audit).to_contain_text(re.compile(r"0 of [1-9]\d* compared"))
    expect(audit).not_to_contain_text("No drift")
    app.check_accessibility()
    drift |= {"drift": 2, "differing": 1}
    page.reload()
    expect(audit).to_have_class("verdict bad")
    expect(audit).to_contain_text(" compared")
    app.check_accessibility()


def test_what_cannot_be_read_any_more_is_grey(
    open_console: Callable[..., AppPage], base_url: str
) -> None:
    app = open_console("/")
    page = app.page
    audit = page.get_by_role("region", name="Live audit")
    expect(audit).to_have_class("verdict good")
    redis = page.locator(".stat", has_text="Redis").locator("b")
    before = color_of(redis)
    page.route(f"{base_url}/ops/*", lambda route: route.abort())
    look(page)
    expect(audit).to_contain_text("No drift, when it was read last")
    expect(audit).to_have_class("verdict unknown")
    expect(page.locator(".outdated .stat", has_text="Redis")).to_be_visible()
    assert color_of(redis) != before
    app.check_accessibility()
    page.unroute(f"{base_url}/ops/*")
    page.get_by_role("button", name="Try again").first.click()
    expect(audit).to_have_class("verdict good")
    assert [error for error in app.errors if "ERR_FAILED" not in error] == []
    app.errors.clear()


def color_of(element: Locator) -> str:
    return str(element.evaluate("element => getComputedStyle(element).color"))


def look(page: Page) -> None:
    """Let the page read, as after its tab was shown again."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def test_a_red_number_leads_to_its_runbook(
    open_console: Callable[..., AppPage], dead_reactions: Callable[..., None]
) -> None:
    dead_reactions("not readable")
    app = open_console("/")
    page = app.page
    dead = page.locator(".stat.bad", has_text="Dead letters")
    with page.context.expect_page() as opened:
        dead.get_by_role("link", name="Runbook dead-letters").click()
    expect(opened.value.get_by_text("# Dead letters")).to_be_visible()
    opened.value.close()
    app.open("/queues")
    row = page.get_by_role("row", name="reactions")
    expect(row.get_by_role("link", name="Runbook dead-letters")).to_be_visible()


def test_a_dead_letter_is_purged(
    open_console: Callable[..., AppPage], dead_reactions: Callable[..., None]
) -> None:
    dead_reactions("not readable")
    app = open_console("/queues/reactions")
    page = app.page
    letter = page.get_by_role("article").filter(has_text="not readable")
    confirm(letter.get_by_role("button", name="Purge"), "Delete this message for ever?")
    expect(page.get_by_role("status").filter(has_text="The message is deleted.")).to_be_visible()
    expect(letter).to_have_count(0)
    app.check_accessibility()
    page.reload()
    expect(page.get_by_text("No dead letters")).to_be_visible()


def test_outboxes_are_swept_at_once(open_console: Callable[..., AppPage]) -> None:
    app = open_console("/")
    page = app.page
    rounds = [{"reactions": 2, "checkins": 1}]
    page.route(
        "**/ops/sweeps",
        lambda route: route.fulfill(json=rounds.pop()) if rounds else route.continue_(),
    )
    page.get_by_role("button", name="Sweep now").click()
    expect(page.get_by_role("status").filter(has_text="sent again")).to_contain_text(
        re.compile(r"^[3-9][\d,]* entries were sent again\.$")
    )
    assert rounds == []
    app.check_accessibility()


@pytest.mark.sampled
def test_no_text_makes_the_console_scroll_sideways(
    open_console: Callable[..., AppPage],
    dead_reactions: Callable[..., None],
    user: Callable[[int], Client],
    operator: Client,
) -> None:
    word = "W" * 200
    dead_reactions(word)
    author, reader = user(next(_ids)), user(next(_ids))
    body = {"kind": "note", "title": word, "body": word}
    post = author("POST", "/posts", body).json["id"]
    report = {"target": {"type": "post", "id": post}, "reason": "spam", "details": word}
    assert reader("POST", "/reports", report).status < 300
    shop_id = operator("POST", "/shops", {"name": word}).json["id"]
    sale = make_voucher(shop_id, time.time(), stock=3, open_s=600) | {"title": word[:100]}
    assert operator("POST", "/vouchers", sale).status < 300
    app = open_console("/")
    pages = (
        *("queues/reactions", "sales", "moderation"),  # with what was written above
        *("", "queues", "reconciliation", "keys", "switches", "erasures", "break-it"),
    )
    wide = []
    for path in choose(pages[:3], pages):
        app.open(f"/{path}")
        app.page.locator("main h1").wait_for()
        expect(app.page.locator(".skeleton")).to_have_count(0)
        wide += [f"/{path}: {what}" for what in find_wide(app.page)]
    assert not wide, "\n".join(wide)


@pytest.mark.deep
@pytest.mark.outage
def test_a_broken_stack_comes_back_to_a_clean_audit_under_a_crowd(
    open_console: Callable[..., AppPage], stack: Stack
) -> None:
    """Given nothing in transit: what an outage before this one left in flight is hidden for
    minutes."""
    assert wait_until_quiet(stack)
    app = open_console("/break-it")
    page = app.page
    crowd = page.get_by_role("group", name="Crowd")
    audit = page.get_by_role("region", name="Live audit")
    page.get_by_role("button", name="Start a crowd").click()
    expect(crowd).to_contain_text("playing")
    page.get_by_role("button", name="Deliver twice").click()
    expect(page.get_by_role("group", name="Deliveries")).to_contain_text("each message twice")
    page.get_by_role("button", name="Stop Redis").click()
    expect(page.get_by_role("group", name="Redis")).to_contain_text("down")
    expect(crowd).not_to_contain_text(" 0 provisional")
    page.get_by_role("button", name="Start Redis").click()
    expect(page.get_by_role("group", name="Redis")).to_contain_text("up")
    kill = page.get_by_role("button", name="Kill its workers")
    consumer = page.get_by_role("group", name="Consumer")

    def is_killed() -> bool:
        kill.click()
        expect(kill).to_be_enabled()
        return consumer.get_by_text(re.compile("^[1-9]")).is_visible()

    wait_until("a worker is killed", is_killed)
    page.get_by_role("button", name="Stop MySQL").click()
    expect(page.get_by_role("group", name="MySQL")).to_contain_text("down")
    page.get_by_role("button", name="Start MySQL").click()
    expect(page.get_by_role("group", name="MySQL")).to_contain_text("up")
    app.refused.discard(503)  # what the header asked for in an outage, if it did
    expect(crowd).to_contain_text("ended", timeout=60_000)
    expect(crowd).to_contain_text("0 failed")
    page.get_by_role("button", name="Deliver once").click()
    expect(audit).to_contain_text("No drift")

    page.get_by_role("button", name="Audit everything").click()
    full = page.get_by_role("region", name="Full audit")
    # A message that failed three times while a store was down is hidden for two minutes.
    expect(full.get_by_text("Clean")).to_be_visible(timeout=240_000)
    # What killed consumers had received is swept after a minute or two.
    expect(audit).to_contain_text("unconfirmed0", timeout=120_000)
    app.check_accessibility()
    app.refused.clear()  # reads of the audit while a store was unavailable


def test_an_operator_makes_a_key_of_a_server_sees_it_once_and_ends_it(
    open_console: Callable[..., AppPage], base_url: str
) -> None:
    app = open_console("/server-keys", (400,))
    page = app.page
    make = page.get_by_role("button", name="Make a key")
    page.get_by_label("Name").fill("No such name")
    make.click()
    expect(page.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    page.get_by_label("Name").fill("console-test")
    page.get_by_label("act: writes for its users").check()
    make.click()
    key = page.get_by_role("status").locator("code").inner_text()
    row = page.get_by_role("row", name=key.split("_")[1])
    expect(row).to_contain_text("act, read")
    app.check_accessibility()
    page.set_viewport_size({"width": 390, "height": 844})
    assert find_wide(page) == []
    assert Client(base_url, key)("GET", "/ops/server-keys").status in (401, 403)
    confirm(row.get_by_role("button", name="End"), "End this key?")
    expect(row).to_contain_text("ended")
    page.reload()
    expect(row).to_contain_text("ended")
    expect(page.get_by_text(key)).to_have_count(0)
