"""Each table and each Redis key has one owner: the context whose stores name it.

``tests/support/tables.py`` lists the tables. ``READERS`` and ``WRITERS`` list the contexts that
read or write tables of others, and why.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from plaza.core.reactions import KINDS
from plaza.infra.contexts import offers
from plaza.operate.accounts.export import list_sections
from tests.support.tables import (
    AUDITED,
    ERASED,
    EXPORTED,
    TABLES,
    find_users,
    read_owners,
    read_user_columns,
)
from tests.unit.policy.modules import PLAZA, ROOT, imports_of, nodes_of

# context -> tables of others that it reads in one statement with its own, and why
READERS = {
    "auth": ({"user"}, "a session has the current role of its user"),
    "notifications": (
        {"counter", "log_barrier", "reaction", "user_block"},
        "what is blocked does not notify; a repair counts the rows of a group",
    ),
    "blocks": ({"reaction"}, "a repair finds the follows that a block should have ended"),
    "content": ({"shop_counter"}, "counters of shops are compared with reviews"),
    "shop_scores": ({"content"}, "the counter of a shop begins as a count of its reviews"),
    "event_log": ({"log_barrier", "reaction_log"}, "reactions and follows are events, too"),
    "feed": (
        {"content", "reaction", "user_counter"},
        "pages join follows with posts and celebrities",
    ),
    "flash_sales": ({"shop"}, "vouchers of a deleted shop are not listed"),
    "follows": ({"reaction"}, "common follows are a join of two lists"),
    "reactions": (
        {"counter", "external_target", "user_counter"},
        "a snapshot is rows and their counter; counters are compared with the rows that they count",
    ),
    "recommendations": (
        {"content", "counter", "reaction", "reaction_log", "user_counter"},
        "lists and rankings have live content only; a score counts the likes that the author "
        "received, and not the author's own",
    ),
    "shops": ({"user"}, "a member of a shop exists when appointed"),
    "reaction_log": (
        {"counter", "reaction", "reaction_log", "user_counter", "watermark"},
        "it recounts all counters from the log and from the rows",
    ),
}

# context -> tables of others that it writes or locks, and why
WRITERS = {
    "auth": ({"user"}, "a user is locked while passkeys are enrolled or end"),
    "event_log": ({"log_barrier"}, "a reader of the reaction log waits for its writers"),
    "recommendations": (
        {"content", "watermark"},
        "content.likes orders a shop's reviews; how far the log is rolled up is a watermark",
    ),
    "reaction_log": ({"reaction_log"}, "it creates and drops the partitions of the log"),
}

# pattern of a key without its shard -> owner
KEYS = {
    "*:*:*s:*": "content",
    "*:*:existence": "targets",
    "*:filter": "infra/derived/id_filter",
    "*:text": "content",
    "*:user:*": "reactions",
    "bucket:*:*": "infra/http/limits",
    "challenge:*": "auth",
    "checkins:outboxes": "checkins",
    "echo:*": "auth",
    "id-token:*": "auth",
    "passkey-challenge-use:*": "auth",
    "passkey-challenge:*": "auth",
    "ids:serials": "infra/derived/ids",
    "keys:report": "keyspace",
    "keys:scan": "keyspace",
    "limit:*:*": "infra/http/limits",
    "live:polls": "live",
    "log_checks": "reactions",
    "live:screens:*": "live",
    "outboxes": "reactions",
    "post:*:comments": "counters",
    "post:*:published": "content",
    "post:*:viewers": "content",
    "posts:unsent": "content",
    "warm_up:known": "warm_up",
    "warm_up:run": "warm_up",
    "ranking:*": "reactions",
    "reach:*:*": "reach",
    "saves:paid": "infra/queues/save_rate",
    "schedules:runs": "infra/jobs/scheduled_jobs",
    "session:*": "auth",
    "shop:*:best_reviews": "recommendations",
    "shop:*:page": "shops",
    "shop:*:score": "shop_scores",
    "shop:*:vouchers": "flash_sales",
    "shops:*": "shops",
    "shops:*:*": "shops",
    "shops:*:moves": "shops",
    "shops:all:types": "shops",
    "shops:places:build": "shops",
    "sign-in:*": "auth",
    "switches:newest": "switches",
    "user:*:*": "feed",
    "user:*:unread": "notifications",
    "user:*:blocks": "blocks",
    "user:*:card": "users",
    "user:*:checkins": "checkins",
    "user:*:hold:*": "counters",
    "user:*:holds": "counters",
    "user:*:counted": "counters",
    "user:*:counters": "counters",
    "user:*:older": "feed",
    "user:*:orders": "flash_sales",
    "user:*:zone": "users",
    "visitor-ids:*:*": "reach",
    "voucher:*": "flash_sales",
    "voucher:*:absent": "flash_sales",
    "vouchers:build": "flash_sales",
    "*:*": "reactions",
}

_WRITES = re.compile(
    r"\b(?:INTO|UPDATE|DELETE FROM|ALTER TABLE|LOCK TABLES)\s+(\w+)"
    r"|\bFROM\s+(\w+)\b(?=(?:(?!\b(?:FROM|JOIN|SELECT)\b).)*\bFOR UPDATE\b)",
    re.DOTALL,
)
_NAMES = re.compile(r"\b(?:FROM|JOIN|INTO|UPDATE|TABLE|TABLES)\s+(\w+)")


def owner_of(file: Path) -> str:
    """Return the context of a file, or its module of infra."""
    parts = file.relative_to(PLAZA).parts
    if parts[0] == "infra":
        return "/".join([*parts[:2], file.stem])
    return parts[1] if len(parts) > 2 else parts[0]


def texts() -> Iterator[tuple[str, str]]:
    """Yield (owner, text) of each string of the product, and of each SQL file."""
    for file in sorted([*PLAZA.glob("*/*/sql/*.sql"), *PLAZA.rglob("*.py")]):
        for text in texts_of(file):
            yield owner_of(file), text


def texts_of(file: Path) -> Iterator[str]:
    """Yield each string of a module, f-strings whole, or the text of a file of SQL."""
    if file.suffix == ".sql":
        yield re.sub("--[^\n]*", "", file.read_text())
    for node in nodes_of(file) if file.suffix == ".py" else ():
        if isinstance(node, ast.JoinedStr):
            yield ast.unparse(node).encode().decode("unicode_escape")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def words_after(text: str, pattern: re.Pattern[str] | None = None) -> Iterator[str]:
    """Yield the names in a statement where ``pattern`` matches; without one all table names."""
    for groups in (pattern or _NAMES).findall(text):
        yield from [groups] if isinstance(groups, str) else groups


def named(pattern: re.Pattern[str]) -> dict[str, set[str]]:
    """Return owner -> tables of others that its statements name where ``pattern`` matches."""
    results = defaultdict(set)
    for owner, text in texts():
        for name in words_after(text, pattern):
            if name in TABLES and TABLES[name].owner != owner:
                results[owner].add(name)
    return dict(results)


def test_every_table_is_listed_with_its_owner() -> None:
    listed = {name: table.owner for name, table in TABLES.items()}
    assert listed == read_owners(), "tests/support/tables.py lists all tables"


def test_every_column_that_can_name_a_user_is_listed() -> None:
    listed = {(name, column) for name, table in TABLES.items() for column in table.users}
    assert listed == read_user_columns(), "tests/support/tables.py lists all of them"


def test_the_owner_exports_the_columns_that_are_listed_as_exported() -> None:
    declared = dict(offers("export"))
    columns = {(s.table, s.user) for sections in declared.values() for s in sections}
    assert columns == find_users(EXPORTED)
    for context, sections in declared.items():
        assert {TABLES[section.table].owner for section in sections} == {context}
    modules = {file.parent.name for file in PLAZA.glob("*/*/export.py")}
    assert declared.keys() == modules - {"accounts"}, "the manifest names the sections"


def test_sections_have_names_of_their_own_in_cursors() -> None:
    names = [section.cursor_name for section in list_sections()]
    assert len(set(names)) == len(names)


def test_all_kinds_of_reactions_are_exported_in_both_states() -> None:
    names = {section.name for section in list_sections()}
    assert {f"{kind}s{state}" for kind in KINDS for state in ("", "_taken_back")} <= names


def test_a_pass_of_an_erasure_calls_the_owner_of_each_erased_column() -> None:
    imported = imports_of(PLAZA / "operate" / "accounts" / "erase.py")
    called = {part for i in imported for part in (*i.module.split("."), i.name)}
    called |= {context for context, _ in offers("erase")}
    owners = {TABLES[table].owner for table, _ in find_users(ERASED)}
    # Reactions take the owner of a target away together with what it received.
    assert owners - {"targets"} <= called


def test_the_audit_reads_the_tables_that_are_listed_as_audited() -> None:
    read = {
        name
        for file in (ROOT / "local" / "audit").glob("*.py")
        for name in _NAMES.findall(file.read_text())
    }
    assert read & set(TABLES) == {n for n, table in TABLES.items() if table.audit == AUDITED}


def test_other_contexts_read_a_table_only_as_listed() -> None:
    known = {context: tables for context, (tables, _) in READERS.items()}
    for context, (tables, _) in WRITERS.items():
        known[context] = known.get(context, set()) | tables
    assert named(_NAMES) == known


def test_other_contexts_write_a_table_only_as_listed() -> None:
    assert named(_WRITES) == {context: tables for context, (tables, _) in WRITERS.items()}


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ("INSERT IGNORE INTO reaction (a) SELECT b FROM content", {"reaction"}),
        ("INSERT INTO x (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 1", set()),
        ("SELECT a FROM content WHERE b FOR UPDATE NOWAIT", {"content"}),
        ("SELECT a FROM content", set()),
        ("DELETE FROM reaction WHERE a", {"reaction"}),
    ],
)
def test_the_search_finds_writes(text: str, tables: set[str]) -> None:
    results = {name for groups in _WRITES.findall(text) for name in groups}
    assert results & set(TABLES) == tables


# ---------------------------------------------------------------- keys of Redis


def template_of(node: ast.AST, names: Mapping[str, ast.expr]) -> str:
    """Return a text with ``*`` for each variable; a name in ``names`` is replaced by its value."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(template_of(value, names) for value in values)
        case ast.FormattedValue(value=ast.Name(id=name)) if name in names:
            return template_of(names[name], {})
    return "*"


def keys_built(file: Path) -> set[str]:
    """Return the patterns of the keys that a module builds, without their shard."""
    results = set()
    scopes = [n for n in nodes_of(file) if isinstance(n, ast.FunctionDef | ast.Module)]
    for scope in scopes:
        body = (
            scope.body
            if isinstance(scope, ast.FunctionDef)
            else [n for n in scope.body if not isinstance(n, ast.FunctionDef | ast.ClassDef)]
        )
        nodes = [node for statement in body for node in ast.walk(statement)]
        names = {
            target.id: node.value
            for node in nodes
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name) and isinstance(node.value, ast.JoinedStr)
        }
        for node in nodes:
            match node:
                case ast.Call(func=ast.Name(id="key_of"), args=[of, what]):
                    parts = [template_of(part, names) for part in (of, what)]
                    results.add(":".join(parts))
                case ast.JoinedStr(values=[ast.Constant(value="{" | "auth{" as tag), *_]):
                    of_auth = file.is_relative_to(PLAZA / "people" / "auth")
                    assert (tag == "auth{") == of_auth, "only keys of auth begin so"
                    results.add(template_of(node, names).partition("}:")[2])
    return results - {""}


def test_every_key_has_an_owner() -> None:
    owners = defaultdict(set)
    for file in sorted(PLAZA.rglob("*.py")):
        for key in keys_built(file):
            owners[key].add(owner_of(file))
    owners["*:*"].discard("infra/derived/projections")  # key_of itself
    assert {key: " ".join(sorted(of)) for key, of in owners.items()} == KEYS
