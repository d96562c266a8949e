"""Plays requests against the rules of a web ACL, as AWS WAF evaluates them.

The managed rule groups of AWS are modelled by what their documentation says: which part of a
request a rule reads, which sizes it refuses, and a text that stands for what it looks for. Whether
AWS finds more in a text shows only in an account.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_plus

Parameters = Mapping[str, Any]


class Request(NamedTuple):
    """A request as it arrives. ``query`` is encoded; names of headers are lower-case."""

    path: str
    query: str = ""
    body: str = ""
    headers: Mapping[str, str] = {"user-agent": "plaza"}
    method: str = "GET"
    address: str = "203.0.113.9"


Rule = Callable[[Request], bool]

TEXTS = {
    "CrossSiteScripting": "<script>alert(1)</script>",
    "EC2MetaDataSSRF": "http://169.254.169.254/latest/meta-data",
    "GenericLFI": "../../etc/passwd",
    "GenericRFI": "http://127.0.0.1:80/a",
    "RestrictedExtensions": "notes.log",
}
"""Kind of rules of the group *common* -> what they look for in any part of a request."""

BAD_INPUTS = {
    "JavaDeserializationRCE": "(java.lang.Runtime).getRuntime().exec",
    "Log4JRCE": "${jndi:ldap://example.com/}",
    "ReactJSRCE": '{"then": "$1:__proto__:then"}',
}
"""The same of the group *known bad inputs*."""


def read_path(request: Request) -> str:
    return request.path


def read_query(request: Request) -> str:
    return unquote_plus(request.query)


def read_body(request: Request) -> str:
    return request.body


def read_headers(request: Request) -> str:
    return "\n".join(request.headers.values())


def read_cookie(request: Request) -> str:
    return request.headers.get("cookie", "")


def finds(text: str, read: Callable[[Request], str]) -> Rule:
    """Return a rule that looks for a text in a part of a request."""
    return lambda request: text in read(request)


_COMMON_PARTS = {
    "CrossSiteScripting": ("BODY", "COOKIE", "QUERYARGUMENTS", "URIPATH"),
    "EC2MetaDataSSRF": ("BODY", "COOKIE", "QUERYARGUMENTS", "URIPATH"),
    "GenericLFI": ("BODY", "QUERYARGUMENTS", "URIPATH"),
    "GenericRFI": ("BODY", "QUERYARGUMENTS", "URIPATH"),
    "RestrictedExtensions": ("QUERYARGUMENTS", "URIPATH"),
}
_BAD_PARTS = {
    "JavaDeserializationRCE": ("BODY", "HEADER", "QUERYSTRING", "URIPATH"),
    "Log4JRCE": ("BODY", "HEADER", "QUERYSTRING", "URIPATH"),
    "ReactJSRCE": ("BODY",),
}
_READERS = {
    "BODY": read_body,
    "COOKIE": read_cookie,
    "HEADER": read_headers,
    "QUERYARGUMENTS": read_query,
    "QUERYSTRING": read_query,
    "URIPATH": read_path,
}
_BOTS = ("nessus", "nmap", "sqlmap")

GROUPS: dict[str, dict[str, Rule]] = {
    "AWSManagedRulesAmazonIpReputationList": {},
    "AWSManagedRulesCommonRuleSet": {
        "NoUserAgent_HEADER": lambda request: not request.headers.get("user-agent"),
        "UserAgent_BadBots_HEADER": lambda request: (
            request.headers.get("user-agent", "").lower().startswith(_BOTS)
        ),
        "SizeRestrictions_QUERYSTRING": lambda request: len(request.query) > 2_048,
        "SizeRestrictions_Cookie_HEADER": lambda request: len(read_cookie(request)) > 10_240,
        "SizeRestrictions_BODY": lambda request: len(request.body.encode()) > 8_192,
        "SizeRestrictions_URIPATH": lambda request: len(request.path) > 1_024,
        **{
            f"{kind}_{part}": finds(TEXTS[kind], _READERS[part])
            for kind, parts in _COMMON_PARTS.items()
            for part in parts
        },
    },
    "AWSManagedRulesKnownBadInputsRuleSet": {
        "Host_localhost_HEADER": lambda request: "localhost" in request.headers.get("host", ""),
        "PROPFIND_METHOD": lambda request: request.method == "PROPFIND",
        "ExploitablePaths_URIPATH": finds("/.env", read_path),
        **{
            f"{kind}_{part}": finds(BAD_INPUTS[kind], _READERS[part])
            for kind, parts in _BAD_PARTS.items()
            for part in parts
        },
    },
}
"""Managed rule group -> its rules."""


def list_refusals(rules: Iterable[Mapping[str, Any]], request: Request) -> list[str]:
    """Return the names of the rules that refuse one request, whatever its rate."""
    return [
        name
        for rule in sorted(rules, key=lambda rule: int(rule["Priority"]))
        for name in _refuse(rule, request)
    ]


def _refuse(rule: Mapping[str, Any], request: Request) -> Iterator[str]:
    statement = rule["Statement"]
    if "RateBasedStatement" in statement:
        return
    if "ManagedRuleGroupStatement" not in statement:
        if "Block" in rule["Action"] and matches(statement, request):
            yield rule["Name"]
        return
    group = statement["ManagedRuleGroupStatement"]
    assert rule["OverrideAction"] == {"None": {}}
    overrides = {o["Name"]: o["ActionToUse"] for o in group.get("RuleActionOverrides", [])}
    known = GROUPS[group["Name"]]
    assert set(overrides) <= set(known), "no such rule in the group"
    for name, is_matched in known.items():
        if overrides.get(name) != {"Count": {}} and is_matched(request):
            yield name


def matches(statement: Mapping[str, Any], request: Request) -> bool:
    """Return whether a request matches a statement."""
    [(kind, body)] = statement.items()
    match kind:
        case "NotStatement":
            return not matches(body["Statement"], request)
        case "AndStatement":
            return all(matches(each, request) for each in body["Statements"])
        case "ByteMatchStatement":
            assert body["PositionalConstraint"] == "EXACTLY"
            return _read(body["FieldToMatch"], request) == str(body["SearchString"])
        case "SizeConstraintStatement":
            assert body["ComparisonOperator"] == "GT"
            text = _read(body["FieldToMatch"], request)
            return text is not None and len(text) > int(body["Size"])
    raise AssertionError(f"{kind} is not modelled")


def _read(field: Mapping[str, Any], request: Request) -> str | None:
    match field:
        case {"UriPath": _}:
            return request.path
        case {"QueryString": _}:
            return request.query
        case {"SingleHeader": {"Name": name}}:
            return request.headers.get(name)
    raise AssertionError(f"{field} is not modelled")


def count_limited(
    rules: Iterable[Mapping[str, Any]], parameters: Parameters, requests: Iterable[Request]
) -> Counter[str]:
    """Return how many of the requests of one window each rate-based rule refuses.

    AWS estimates the rate and acts some seconds late; here a rule refuses what exceeds its limit.
    """
    rated = {
        rule["Name"]: rule["Statement"]["RateBasedStatement"]
        for rule in rules
        if "RateBasedStatement" in rule["Statement"]
    }
    seen: Counter[tuple[str, ...]] = Counter()
    refused: Counter[str] = Counter()
    for request in requests:
        for name, rate in rated.items():
            if "ScopeDownStatement" in rate and not matches(rate["ScopeDownStatement"], request):
                continue
            key = _aggregate(rate, request)
            if key is None:
                continue
            seen[name, *key] += 1
            if seen[name, *key] > parameters[rate["Limit"]["Ref"]]:
                refused[name] += 1
                break
    return refused


def _aggregate(rate: Mapping[str, Any], request: Request) -> tuple[str, ...] | None:
    """Return what requests are counted by; None for a request without a part of it."""
    if rate["AggregateKeyType"] == "IP":
        return (request.address,)
    assert rate["AggregateKeyType"] == "CUSTOM_KEYS"
    parts = [
        request.address if "IP" in key else request.headers.get(key["Header"]["Name"])
        for key in rate["CustomKeys"]
    ]
    return None if None in parts else tuple(str(part) for part in parts)
