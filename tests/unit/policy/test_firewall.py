"""The firewall of edge and load balancer lets honest requests in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from cli.paths import CONTRACT, ROOT
from plaza.infra.http.requests import MAX_BODY_BYTES
from tests.support.firewall import (
    BAD_INPUTS,
    GROUPS,
    TEXTS,
    Request,
    count_limited,
    list_refusals,
)
from tests.support.largest import list_largest
from tests.unit.policy import template
from tests.unit.policy.template import load_template

EDGE = load_template((ROOT / "deploy" / "edge.yaml").read_text())
ACL: dict[str, Any] = EDGE["Resources"]["WebAcl"]["Properties"]
RULES: list[dict[str, Any]] = ACL["Rules"]
DEFAULTS = {name: p["Default"] for name, p in EDGE["Parameters"].items() if "Default" in p}
OF_APPLICATION = {
    name: p["Default"] for name, p in template.TEMPLATE["Parameters"].items() if "Default" in p
}
OPERATIONS = list(list_largest(json.loads(CONTRACT.read_text())))
WINDOW_S = 300
AGENT = {"user-agent": "plaza"}

each_operation = pytest.mark.parametrize(
    "operation", OPERATIONS, ids=lambda o: f"{o.method} {o.path[:40]}"
)


def limited(requests: Iterator[Request]) -> dict[str, int]:
    return dict(count_limited(RULES, DEFAULTS, requests))


# ---------------------------------------------------------------- one request


@each_operation
def test_the_largest_request_of_the_contract_passes(operation: Any) -> None:
    """As the clients send it: each character of a value that may be escaped is."""
    body = "\U0001f35c" * (MAX_BODY_BYTES // 4) if operation.has_body else ""
    headers = {**AGENT, **operation.headers}
    request = Request(operation.path, operation.query, body, headers, operation.method)
    assert list_refusals(RULES, request) == []


def test_the_largest_queries_are_longer_than_the_common_rules_allow() -> None:
    """Else the test above would show nothing."""
    longest = {o.path: len(o.query) for o in OPERATIONS if len(o.query) > 2_048}
    assert {"/posts", "/users", "/shops/search"} <= set(longest)


def test_a_query_that_no_route_allows_is_refused() -> None:
    [limit] = [
        rule["Statement"]["SizeConstraintStatement"]["Size"]
        for rule in RULES
        if "SizeConstraintStatement" in rule["Statement"]
    ]
    assert max(len(operation.query) for operation in OPERATIONS) <= limit
    request = Request("/posts", "ids=" + "1" * limit)
    assert list_refusals(RULES, request) == ["long-queries"]


@pytest.mark.parametrize("text", [*TEXTS.values(), *BAD_INPUTS.values()])
def test_no_text_in_a_body_is_refused(text: str) -> None:
    """A comment may quote an attack. No function interprets a text."""
    body = json.dumps({"content": text})
    assert list_refusals(RULES, Request("/posts", "", body, AGENT, "POST")) == []


@pytest.mark.parametrize("text", TEXTS.values())
def test_no_shop_is_hidden_from_a_search_by_its_name(text: str) -> None:
    [search] = [
        o
        for o in list_largest(json.loads(CONTRACT.read_text()), text)
        if o.path == "/shops/search" and o.method == "GET"
    ]
    assert list_refusals(RULES, Request(search.path, search.query)) == []


def test_a_client_without_a_user_agent_passes() -> None:
    assert list_refusals(RULES, Request("/posts/1", headers={})) == []


@pytest.mark.parametrize(
    ("request_", "rule"),
    [
        (Request("/" + "a" * 1_100), "SizeRestrictions_URIPATH"),
        (Request(f"/posts/{TEXTS['GenericLFI']}"), "GenericLFI_URIPATH"),
        (Request("/.env"), "ExploitablePaths_URIPATH"),
        (Request("/", headers={"user-agent": "nmap"}), "UserAgent_BadBots_HEADER"),
        (Request("/", headers={**AGENT, "x": BAD_INPUTS["Log4JRCE"]}), "Log4JRCE_HEADER"),
        (Request("/", headers={**AGENT, "cookie": "c" * 11_000}), "SizeRestrictions_Cookie_HEADER"),
        (Request("/", method="PROPFIND"), "PROPFIND_METHOD"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_client_sends_is_refused(request_: Request, rule: str) -> None:
    assert rule in list_refusals(RULES, request_)


def test_only_rules_that_honest_requests_match_are_counted_instead_of_applied() -> None:
    """What a route takes as a text, the absence of a User-Agent, and the size of what is long."""
    counted = {
        override["Name"]
        for rule in RULES
        if "ManagedRuleGroupStatement" in rule["Statement"]
        for override in rule["Statement"]["ManagedRuleGroupStatement"].get(
            "RuleActionOverrides", ()
        )
    }
    texts = {
        name
        for rules in GROUPS.values()
        for name in rules
        if name.endswith(("_BODY", "_QUERYARGUMENTS"))
    }
    assert counted == texts | {"NoUserAgent_HEADER", "SizeRestrictions_QUERYSTRING"}


# ---------------------------------------------------------------- many requests


def of_people(count: int, each: int, path: str = "/feed") -> Iterator[Request]:
    """Requests of people behind one address, each with a session."""
    for number in range(count):
        headers = {**AGENT, "authorization": f"Bearer token-{number}"}
        yield from (Request(path, headers=headers) for _ in range(each))


def test_people_behind_the_address_of_a_carrier_are_not_limited_together() -> None:
    """2,000 people, each with three requests a minute: 100 a second."""
    assert limited(of_people(2_000, 3 * WINDOW_S // 60)) == {}


def test_a_session_gets_what_plaza_itself_allows_it() -> None:
    per_s = OF_APPLICATION["ReadsPerSecond"] + OF_APPLICATION["WritesPerSecond"]
    bursts = OF_APPLICATION["ReadsBurst"] + OF_APPLICATION["WritesBurst"]
    assert limited(of_people(1, per_s * WINDOW_S + bursts)) == {}


def test_anonymous_callers_of_a_network_get_what_plaza_itself_allows_them() -> None:
    count = OF_APPLICATION["AnonymousPerSecond"] * WINDOW_S + OF_APPLICATION["AnonymousBurst"]
    assert limited(Request("/posts/ranking") for _ in range(count)) == {}


def test_screens_that_poll_do_not_use_up_what_likes_and_sign_ins_need() -> None:
    """500 screens of one address: 120 polls each. Then people still get in."""
    polls = (Request("/totals", "of=post:1") for _ in range(500 * 120))
    assert limited(polls) == {}

    def both() -> Iterator[Request]:
        yield from (Request("/totals", "of=post:1") for _ in range(500 * 120))
        yield from of_people(2_000, 15)
        yield from (Request("/auth/codes", method="POST") for _ in range(100))

    assert limited(both()) == {}


@pytest.mark.parametrize(
    ("per_s", "kind", "rule"),
    [
        (100, "anonymous", "many-requests"),
        (60, "session", "many-requests-of-a-session"),
        (1_000, "invented tokens", "flood"),
        (300, "polls", "many-polls"),
    ],
)
def test_a_flood_is_refused(per_s: int, kind: str, rule: str) -> None:
    def requests() -> Iterator[Request]:
        for number in range(per_s * WINDOW_S):
            if kind == "polls":
                yield Request("/totals", "of=post:1")
            elif kind == "anonymous":
                yield Request("/posts/1")
            else:
                token = number if kind == "invented tokens" else 1
                yield Request("/feed", headers={**AGENT, "authorization": f"Bearer {token}"})

    assert set(limited(requests())) == {rule}


def test_no_token_is_in_the_log_of_refused_requests() -> None:
    """The log has the values that a rate-based rule counts by, whatever is redacted."""
    for rule in RULES:
        for key in rule["Statement"].get("RateBasedStatement", {}).get("CustomKeys", ()):
            if "Header" in key:
                [hashed] = key["Header"]["TextTransformations"]
                assert hashed["Type"] == "MD5"
    log = EDGE["Resources"]["RefusedRequestsLog"]["Properties"]
    assert {"SingleHeader": {"Name": "authorization"}} in log["RedactedFields"]


def test_a_limited_client_learns_when_to_come_back_and_a_browser_may_read_it() -> None:
    bodies = ACL["CustomResponseBodies"]
    for rule in RULES:
        if "RateBasedStatement" not in rule["Statement"]:
            continue
        answer = rule["Action"]["Block"]["CustomResponse"]
        assert answer["ResponseCode"] == 429
        headers = {header["Name"]: header["Value"] for header in answer["ResponseHeaders"]}
        assert headers == {
            "access-control-allow-origin": "*",
            "access-control-expose-headers": "retry-after",
            "retry-after": "60",
        }
        problem = json.loads(bodies[answer["CustomResponseBodyKey"]]["Content"])
        assert problem["status"] == 429
        assert problem["type"].endswith("/too-many-requests")


def test_the_rules_fit_into_what_a_web_acl_costs_without_more() -> None:
    """1,500 capacity units; what each rule takes is documented."""
    units = {
        "AWSManagedRulesAmazonIpReputationList": 25,
        "AWSManagedRulesCommonRuleSet": 700,
        "AWSManagedRulesKnownBadInputsRuleSet": 200,
    }
    total = 0
    for rule in RULES:
        statement = rule["Statement"]
        if "ManagedRuleGroupStatement" in statement:
            total += units[statement["ManagedRuleGroupStatement"]["Name"]]
        else:
            keys = statement.get("RateBasedStatement", {}).get("CustomKeys", ())
            total += 2 + 40 * len(keys) + 30 * json.dumps(statement).count("FieldToMatch")
    assert total <= 1_500
