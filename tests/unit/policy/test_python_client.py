"""The generated modules of the Python client follow from the contract, with the names of the
TypeScript client."""

from __future__ import annotations

import json
import re

import pytest

from cli.paths import CONTRACT, ROOT
from tools.python_client import PACKAGE, make_files

TYPESCRIPT = ROOT / "clients" / "typescript" / "src" / "resources.ts"
FILES = ("models.py", "problems.py", "resources.py", "examples.json")


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return make_files(json.loads(CONTRACT.read_text()))


@pytest.mark.parametrize("name", FILES)
def test_generated_modules_are_those_of_the_contract(made: dict[str, str], name: str) -> None:
    assert sorted(made) == sorted(FILES)
    assert made[name] == (PACKAGE / name).read_text(), "`make generate` generates it"


def test_the_methods_of_both_clients_have_the_same_names(made: dict[str, str]) -> None:
    operations = json.loads(made["examples.json"])["operations"]
    fields = re.findall(
        r"readonly (\w+) = bind<\w+>\(this, \{(.*?)\}\)", TYPESCRIPT.read_text(), re.DOTALL
    )
    typescript = {
        f"{snake(resource)}.{snake(name)}": request
        for resource, body in fields
        for name, request in re.findall(r'(\w+): "(.*?)"', body)
    }
    assert len(typescript) > 100
    assert {
        name: f"{item['method'].lower()} {item['path']}" for name, item in operations.items()
    } == {name: re.sub(r"^(\w+)\W? ", r"\1 ", request) for name, request in typescript.items()}


def snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)
