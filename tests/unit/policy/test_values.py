"""Values that two versions of Plaza share are declared as codecs, and keep their encoding.

During a deploy one version decodes what the other has stored. ``events/projections`` has the texts
of each codec, one a line, in the order of ``VALUES``. Messages have their own (``test_messages``).
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from typing import Any

import pytest

import plaza
from plaza.commerce.flash_sales.model import ArchivedOrder, Terms, Voucher
from plaza.commerce.shops.model import Shop, ShopType
from plaza.core.counters import UserCounter
from plaza.core.event_log.s3_archive import ArchivedEvent
from plaza.core.reaction_log.model import (
    ArchivePart,
    ArchiveProgress,
    Checksum,
    LoggedEvent,
    Manifest,
    PartitionSums,
)
from plaza.core.switches.model import Switches
from plaza.core.switches.redis_store import StoredSwitches
from plaza.infra.jobs.scheduled_jobs import RunEnd
from plaza.infra.queues.messages import MessageCodec
from plaza.infra.runtime import codec
from plaza.infra.runtime.codec import DELETED, Codec
from plaza.operate.accounts import ExportCursor
from plaza.operate.keyspace.key_scan import KeySize, ScanState
from plaza.people.auth.issuers import IssuerKeys, PublicKey
from plaza.people.auth.sessions import Session
from plaza.people.users.redis_store import CardValue
from plaza.people.users.zones import Zone
from plaza.social.content.model import ListCursor, Text
from plaza.social.feed.model import FeedEntry, OlderPart
from plaza.social.shop_scores import ShopCounter
from tests.unit.policy.modules import PLAZA, nodes_of
from tests.unit.policy.template import ROOT

FOLDER = ROOT / "events" / "projections"
MAX_ID = 2**63 - 1
AT_US = 1_743_760_800_000_000
PART = ArchivePart(
    "part-00000-5f2c.jsonl.gz",
    Checksum(2, 7_000_000_001),
    180,
    "5f2c" * 16,
    AT_US,
    AT_US + 1,
    ("post", 11, "like", 7, AT_US + 1),
)
SALE = Switches(stopped_sales=frozenset({"6", "5"}), reads_factor=0.5)
POLLED = Switches(notifications_stopped=True, live_poll_s=10)
TERMS = Terms(5, "Noodles 🍜", 990, 100, AT_US, AT_US + 1, "flash", AT_US + 2)
PLAIN_TERMS = Terms(5, "Tea", 150, 10, 0, 32_503_679_999_000_000, "ordinary", None)

VALUES: dict[str, list[Any]] = {
    "archived_events": [
        ArchivedEvent(1, "comment.created", AT_US, 7, "post", 11, 12, None),
        ArchivedEvent(2, "order.failed", AT_US, 7, "voucher", 5, 101, "sold-out"),
        ArchivedEvent(3, "comment.hidden", AT_US, 8, "post", 11, 12, None, "0123456789abcdef"),
    ],
    "archived_orders": [
        ArchivedOrder(101, 5, 7, None, "r-1", AT_US, AT_US + 1, 9),
        ArchivedOrder(102, 5, 8, "sold-out", None, AT_US, None, None),
    ],
    "blocks": [[7, MAX_ID], []],
    "cards": [CardValue("Anaïs", "https://pics.example/7.png"), CardValue("Bo", None)],
    "comment_totals": [3, 0],
    "content_texts": [
        Text(
            type="post",
            author_id=7,
            body='Noodles 🍜 "to go"',
            kind="note",
            title="Anaïs",
            images=("https://pics.example/1.png",),
            id=11,
            created_us=AT_US,
            version=2,
            edited_us=AT_US + 1,
            hidden=True,
        ),
        Text(
            type="review",
            author_id=8,
            body="fine",
            parent_id=5,
            title="Lunch",
            score=4,
            order_id=101,
            id=12,
            created_us=AT_US,
        ),
        DELETED,
    ],
    "export_positions": [
        ExportCursor("posts", ("2026-01-02T03:04:05.000006", "12")),
        ExportCursor("profile", ()),
    ],
    "gauge_samples": [{"backlog:reactions": 7.0, "saved_total": 12.0}],
    "issuer_keys": [
        IssuerKeys(
            {
                "https://id.example.com": [
                    PublicKey("RSA", "r1", n="sXch", e="AQAB"),
                    PublicKey("EC", "e1", crv="P-256", x="f83O", y="x_FE"),
                ],
                "https://a.example": [],
            }
        ),
        IssuerKeys(),
    ],
    "key_scans": [
        ScanState(
            1_743_760_800.5,
            {"10.0.0.9:6379": 77},
            9,
            {"hash": [KeySize(900, 3, "hash", "{1}:user:7:card")]},
            [KeySize(2_000_000, 12_000, "zset", "{1}:post:11:recent")],
            1,
            1,
        )
    ],
    "unread": [0, 1_204],
    "list_cursors": [[ListCursor(AT_US, 12), ListCursor(AT_US, 11)], []],
    "older_posts": [
        OlderPart(
            3,
            "1743760800000000",
            ListCursor(AT_US, MAX_ID),
            ListCursor(AT_US - 9, 11),
            86_400_000_000,
            [FeedEntry(AT_US - 1, 12, 7), FeedEntry(AT_US - 9, 11, 10)],
        ),
        OlderPart(1, "", ListCursor(AT_US, 12), ListCursor(0, 0), 60_000_000, []),
    ],
    "reason_counts": [{"counter": 2, "total": 1}],
    "run_ends": [
        RunEnd(1_743_760_800_000, 12, None, {"swept": 3, "share": 0.5}),
        RunEnd(1_743_760_800_000, 12, "MysqlDown", {}),
    ],
    "sessions": [
        Session(7, "user", 1_743_760_800, 1_743_760_900, 1_743_760_700),
    ],
    "shop_pages": [
        Shop(
            id=5,
            name="Noodles 🍜",
            type_id=1,
            area="Mitte",
            address="Hof 1",
            x=13.4,
            y=52.52,
            images=("https://pics.example/1.png",),
            avg_price_cents=900,
            open_hours="10-22",
            created_us=AT_US,
            updated_us=AT_US + 1,
        ),
        Shop(id=6, name="Tea", created_us=AT_US, updated_us=AT_US),
        DELETED,
    ],
    "shop_totals": [[ShopCounter(12, 51)]],
    "shop_types": [[ShopType(1, "food", "https://pics.example/f.png"), ShopType(2, "tea", None)]],
    "stored_switches": [StoredSwitches(1_743_760_830, SALE)],
    "switches": [Switches(), SALE, POLLED],
    "text_lists": [("https://pics.example/1.png", "é"), ()],
    "texts": ["0;", "anything at all"],
    "user_totals": [UserCounter(1, 2, 3, 4, 5, 17), UserCounter()],
    "reaction_log_lines": [LoggedEvent("post", 11, "like", 7, AT_US, 1, 1)],
    "reaction_log_manifests": [Manifest(date(2025, 4, 4), (PART,)), Manifest(date(2025, 4, 5), ())],
    "reaction_log_progress": [ArchiveProgress(Checksum(9, 9), (PART,))],
    "reaction_log_sums": [
        PartitionSums(
            {date(2025, 4, 4): Checksum(9, 9)},
            ("post", 11, "like", 7, AT_US),
            False,
            {"reaction_log/date=2025-04-04/manifest-0123456789abcdef.json": 3},
        ),
        PartitionSums(),
    ],
    "vouchers": [
        [Voucher(9, TERMS, 40, 3, False, True, True, 2), Voucher(8, PLAIN_TERMS, 1, 0, True)]
    ],
    "zones": [
        Zone("Europe/Berlin", date(2026, 1, 2)),
        Zone("UTC", None),
        Zone("Asia/Tokyo", date(2026, 1, 1), (date(2026, 1, 1), date(2026, 1, 1))),
    ],
}

OPTIONAL: dict[str, set[str]] = {
    "archived_events": {"key_id"},
    "issuer_keys": {"issuers"},  # the secret is created with an empty object
    "switches": {"*"},  # a switch of another version is normal
    "stored_switches": {"*"},
}
"""Fields that a text may lack."""

MAPS = {"gauge_samples", "reason_counts"}
"""Codecs of objects whose fields are data."""

JSON_LOADS = {
    "social/feed/mysql_store.py": "a list that the statement has built",
    "infra/http/resolver.py": "a response of this process",
    "infra/http/cursors.py": "a cursor, whose parts are checked",
    "infra/http/arguments.py": "the body of a request",
    "infra/mysql/database_users.py": "a secret in the format of AWS",
    "infra/http/web_client.py": "documents of other servers",
    "infra/aws/secrets.py": "secrets that operators write, in two formats",
    "infra/aws/aws_json.py": "replies of SQS",
    "infra/aws/deployment_hook.py": "a response of the version that is deployed",
    "people/auth/passkeys.py": "what a browser has signed",
    "operate/accounts/canary.py": "a secret in a format of its own, which a rotation replaces",
    "infra/runtime/settings.py": "a parameter of the deployment",
    "operate/operations/model.py": "a dead letter, shown to operators as it is",
}
"""Module -> the JSON that it decodes, which no other version of Plaza has written."""


@cache
def codecs() -> Mapping[str, Codec[Any]]:
    """Return name -> codec of all values but messages."""
    for module in pkgutil.walk_packages(plaza.__path__, "plaza."):
        importlib.import_module(module.name)
    return {n: c for n, c in codec.declared().items() if not isinstance(c, MessageCodec)}


def pinned(name: str) -> list[str]:
    return (FOLDER / f"{name}.jsonl").read_text().splitlines()


def test_every_codec_has_pinned_values() -> None:
    assert sorted(VALUES) == sorted(codecs())
    assert {file.name for file in FOLDER.iterdir()} == {f"{name}.jsonl" for name in codecs()}


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_value_is_encoded_to_the_pinned_bytes_and_decoded_from_them(name: str) -> None:
    texts = [codecs()[name].encode(value) for value in VALUES[name]]
    assert texts == pinned(name), "change a text only if the version before it can read it"
    assert [codecs()[name].decode(text) for text in texts] == VALUES[name]


@pytest.mark.parametrize("name", sorted({*VALUES} - MAPS))
def test_a_field_that_a_later_version_adds_is_ignored(name: str) -> None:
    for value, text in zip(VALUES[name], pinned(name), strict=True):
        for longer in _add_fields(text):
            assert codecs()[name].read(longer) == value, longer


@pytest.mark.parametrize("name", sorted({*VALUES} - MAPS - {"texts", "text_lists", "blocks"}))
def test_a_value_that_lacks_a_required_field_is_a_miss(name: str) -> None:
    checked = 0
    for text in pinned(name):
        for field, shorter in _drop_fields(text):
            if not OPTIONAL.get(name, set()) & {field, "*"}:
                assert codecs()[name].read(shorter) is None, shorter
            checked += 1
    assert checked or name in {
        "unread",
        "comment_totals",
        "export_positions",
        "sessions",
        "zones",
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sessions", "7:user:1743760800:1743760900"),
        ("sessions", "7:user:soon:1743760900:1743760700"),
        ("sessions", "7"),
        ("zones", "UTC"),
        ("zones", "UTC tomorrow"),
        ("comment_totals", ""),
        ("comment_totals", "many"),
        ("stored_switches", "{}"),
        ("stored_switches", "soon;{}"),
    ],
)
def test_a_text_that_is_too_short_is_a_miss(name: str, text: str) -> None:
    assert codecs()[name].read(text) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sessions", "7:user:1743760800:1743760900:1743760700:new"),
        ("zones", "Europe/Berlin 2026-01-02 new"),
    ],
)
def test_the_rest_of_a_longer_text_is_ignored(name: str, text: str) -> None:
    assert codecs()[name].read(text) == VALUES[name][0]


def test_stored_values_are_decoded_by_codecs_only() -> None:
    results = set()
    for file in PLAZA.rglob("*.py"):
        name = str(file.relative_to(PLAZA))
        if name != "infra/runtime/codec.py" and any(map(_decodes_json, nodes_of(file))):
            results.add(name)
    assert results == {*JSON_LOADS}


def test_only_codecs_use_the_library_that_encodes() -> None:
    users = {
        str(file.relative_to(PLAZA))
        for file in PLAZA.rglob("*.py")
        for node in nodes_of(file)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "msgspec"
    }
    assert users == {"infra/runtime/codec.py", "infra/queues/messages.py"}


def _decodes_json(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return (node.value.id, node.attr) in {("json", "loads"), ("json", "JSONDecoder")}
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == "json"
        and any(alias.name in {"loads", "JSONDecoder"} for alias in node.names)
    )


def _add_fields(text: str) -> Iterator[str]:
    """Yield ``text`` with a field more in each of its objects and rows."""
    prefix, document = _parse(text)
    if isinstance(document, dict):
        yield prefix + json.dumps(document | {"added_later": {"a": [1]}})
    elif isinstance(document, list) and document and isinstance(document[0], list):
        yield prefix + json.dumps([[*row, "added later"] for row in document])


def _drop_fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield (field, ``text`` without it) for each object, and for the last column of rows."""
    prefix, document = _parse(text)
    if isinstance(document, dict):
        for field in document:
            rest = {name: value for name, value in document.items() if name != field}
            yield field, prefix + json.dumps(rest)
    elif isinstance(document, list) and document and isinstance(document[0], list):
        yield "the last", prefix + json.dumps([row[:-1] for row in document])
    elif isinstance(document, list) and document:
        yield "the last", prefix + json.dumps(document[:-1])


def _parse(text: str) -> tuple[str, Any]:
    """Return (what stands before the JSON of a text, the JSON; None without one)."""
    prefix, mark, rest = text.rpartition(";")
    try:
        return prefix + mark, json.loads(rest)
    except ValueError:
        return "", None
