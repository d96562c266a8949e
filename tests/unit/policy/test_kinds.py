"""Kinds of reactions are data: what iterates over them has each, and only one place names one."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from cli.paths import CONTRACT
from plaza.core.reactions import KINDS, Kind
from plaza.core.reactions.kinds import BUILT_IN, CONTENT_TYPES
from tests.unit.policy.modules import FUNCTIONS, PLAZA, ROOT, tree_of

DOCUMENT: dict[str, Any] = json.loads(CONTRACT.read_text())
OF_CONTENT = [kind for kind in BUILT_IN if "user" not in kind.targets]
VIEWS = {
    "post": ("Post", "PostPreview", "PostTotals"),
    "comment": ("Comment", "TextTotals"),
    "review": ("Review", "TextTotals"),
    "user": ("UserProfile", "UserTotals"),
}

of_content = pytest.mark.parametrize("kind", OF_CONTENT, ids=lambda kind: kind.name)


def fields_of(schema: str) -> dict[str, Any]:
    fields: dict[str, Any] = DOCUMENT["components"]["schemas"][schema]["properties"]
    return fields


@of_content
def test_a_built_in_kind_has_named_routes_of_each_of_its_targets(kind: Kind) -> None:
    paths = DOCUMENT["paths"]
    for target in kind.targets & CONTENT_TYPES:
        assert {"put", "delete"} <= set(paths[f"/{target}s/{{{target}_id}}/{kind.name}s/me"])
    assert "get" in paths[f"/users/me/{kind.name}s"]


def test_each_kind_has_the_routes_of_all_kinds() -> None:
    reaction = "/targets/{target_type}/{target_id}/reactions/{kind}"
    paths = DOCUMENT["paths"]
    assert set(paths[f"{reaction}/me"]) == {"get", "put", "delete"}
    assert set(paths[reaction]) == set(paths["/users/me/reactions/{kind}"]) == {"get"}


@of_content
def test_views_have_the_named_total_and_state_of_a_built_in_kind(kind: Kind) -> None:
    state = f"{kind.name.removesuffix('e')}ed"
    for target in kind.targets & CONTENT_TYPES:
        assert all(f"{kind.name}s" in fields_of(schema) for schema in VIEWS[target])
    assert state in fields_of("ViewerState")
    assert f"{kind.name}s" in fields_of("TargetTotals")
    assert state in fields_of("TargetViewerState")
    assert kind.received
    assert kind.received.removesuffix("_total") in fields_of("UserProfile")


@pytest.mark.parametrize("schema", sorted({*sum(VIEWS.values(), ()), "TargetTotals"}))
def test_views_have_all_kinds(schema: str) -> None:
    assert "reactions" in fields_of(schema)


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.name)
def test_a_built_in_kind_has_a_method_of_the_client_and_a_button(kind: Kind) -> None:
    assert f"\n  {kind.name}(" in (ROOT / "clients/typescript/src/client.ts").read_text()
    buttons = (ROOT / "web/app/src/reactions.tsx").read_text()
    assert f"export function {kind.name.title()}Button(" in buttons


def test_tests_have_a_kind_of_a_deployment_besides_the_built_in_ones() -> None:
    built_in, added = list(KINDS.values())[: len(BUILT_IN)], list(KINDS.values())[len(BUILT_IN) :]
    assert built_in == list(BUILT_IN)
    assert [(kind.name, kind.targets) for kind in added] == [("bookmark", CONTENT_TYPES)]


# ---------------------------------------------------------------- only one place names a kind

NAMING = {
    "people/blocks/mysql_store.py": "a block ends follows",
    "social/content/encoder.py": "fields of likes and collects by name",
    "social/feed/mysql_store.py": "a feed has posts of those whom a user follows",
    "people/follows/mysql_store.py": "the context of this kind",
    "notifications/push/model.py": "kinds of notifications",
    "core/reactions/kinds.py": "the declaration",
    "social/recommendations/mysql_hours.py": "rankings are by likes",
    "social/recommendations/mysql_rankings.py": "rankings are by likes",
    "social/recommendations/mysql_recommendations.py": "recommendations are by likes",
    "social/recommendations/mysql_roll_up.py": "recommendations are by likes",
    "notifications/notifications/model.py": "kinds of notifications",
    "notifications/notifications/mysql_lists.py": "kinds of notifications",
    "api/reactions/app.py": "routes of likes and collects by name",
}
"""Module -> why it names a built-in kind. Examples of the contract, in schemas, name them, too."""


def test_no_other_module_names_a_kind() -> None:
    files = [(PLAZA, file) for file in PLAZA.rglob("*.py") if file.name != "schemas.py"]
    files += [(FUNCTIONS, file) for file in FUNCTIONS.rglob("*.py")]
    named = {
        str(file.relative_to(folder))
        for folder, file in files
        if any(map(_names_a_kind, _texts_of(tree_of(file))))
    }
    assert named == NAMING.keys()


def _names_a_kind(text: str) -> bool:
    quoted = set(re.findall(r"'([a-z]+)'", text))
    return any(kind.name in {text, *quoted} for kind in BUILT_IN)


def _texts_of(tree: ast.Module) -> Iterator[str]:
    """Yield the constants of a module, without exported names and routes."""
    left_out = {
        id(constant)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        for constant in ast.walk(node.value)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield "" if id(node) in left_out else node.value
