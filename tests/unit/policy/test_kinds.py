"""A kind of reaction is in each place that names kinds: the API, the client, the web, the tools."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cli.paths import CONTRACT
from plaza.reactions import KINDS, Kind
from tests.unit.policy.modules import ROOT

DOCUMENT: dict[str, Any] = json.loads(CONTRACT.read_text())
OF_CONTENT = [kind for kind in KINDS.values() if "user" not in kind.targets]

of_content = pytest.mark.parametrize("kind", OF_CONTENT, ids=lambda kind: kind.name)


def fields_of(schema: str) -> dict[str, Any]:
    fields: dict[str, Any] = DOCUMENT["components"]["schemas"][schema]["properties"]
    return fields


@of_content
def test_a_kind_has_routes_to_set_remove_and_list_it(kind: Kind) -> None:
    paths = DOCUMENT["paths"]
    for target in kind.targets:
        assert {"put", "delete"} <= set(paths[f"/{target}s/{{{target}_id}}/{kind.name}s/me"])
    assert "get" in paths[f"/users/me/{kind.name}s"]


@of_content
def test_views_have_the_total_and_the_callers_state_of_a_kind(kind: Kind) -> None:
    state = f"{kind.name.removesuffix('e')}ed"
    totals = {"post": ("Post", "PostPreview"), "comment": ("Comment",), "review": ("Review",)}
    states = {"post": "PostViewerState", "comment": "TextViewerState", "review": "TextViewerState"}
    for target in kind.targets:
        assert all(f"{kind.name}s" in fields_of(schema) for schema in totals[target])
        assert state in fields_of(states[target])
    assert f"{kind.name}s" in fields_of("TargetTotals")
    assert state in fields_of("TargetViewerState")
    assert kind.received.removesuffix("_total") in fields_of("UserProfile")


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_has_a_method_of_the_client_and_a_button(name: str) -> None:
    assert f"\n  {name}(" in (ROOT / "clients/typescript/src/client.ts").read_text()
    buttons = (ROOT / "web/app/src/reactions.tsx").read_text()
    assert f"export function {name.title()}Button(" in buttons


def test_texts_that_list_the_kinds_have_all() -> None:
    texts = [fields_of("AuditedTargetResponse")["kind"]["description"]]
    texts += re.findall(r"^\| kind \| (.+?) \|", (ROOT / "docs/glossary.md").read_text(), re.M)
    assert [set(re.findall(r"`(\w+)`", text)) for text in texts] == [set(KINDS)] * 2
