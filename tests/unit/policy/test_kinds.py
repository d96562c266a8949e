"""Kinds of reactions are data: what iterates over them has each, and only one place names one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.paths import CONTRACT
from plaza.reactions import KINDS, Kind
from plaza.reactions.kinds import BUILT_IN
from tests.unit.policy.modules import ROOT

DOCUMENT: dict[str, Any] = json.loads(CONTRACT.read_text())
OF_CONTENT = [kind for kind in BUILT_IN if "user" not in kind.targets]
VIEWS = {
    "post": ("Post", "PostPreview", "PostTotals"),
    "comment": ("Comment", "TextTotals"),
    "review": ("Review", "TextTotals"),
    "user": ("UserTotals",),
}

of_content = pytest.mark.parametrize("kind", OF_CONTENT, ids=lambda kind: kind.name)


def fields_of(schema: str) -> dict[str, Any]:
    fields: dict[str, Any] = DOCUMENT["components"]["schemas"][schema]["properties"]
    return fields


@of_content
def test_a_built_in_kind_has_named_routes_of_each_of_its_targets(kind: Kind) -> None:
    paths = DOCUMENT["paths"]
    for target in kind.targets:
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
    for target in kind.targets:
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


def test_the_kinds_of_this_process_are_the_built_in_ones() -> None:
    assert list(KINDS.values()) == list(BUILT_IN)
