"""Imports point down, contexts use each other's public names only, and handlers are short."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from plaza.core.reactions import KINDS
from tests.unit.policy.modules import (
    CONTEXTS,
    FUNCTIONS,
    PLAZA,
    ROOT,
    imports_of,
    module_file,
    nodes_of,
    product_files,
    tree_of,
)

MAX_LINES = 22  # of a handler, its imports and the docstring of its module excluded
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
FORBIDDEN_IN_HANDLERS = {"json", "redis", "pymysql", "boto3", "botocore"}
FORBIDDEN_IN_RULES = {"redis", "pymysql", "botocore", "boto3", "socket", "os", "time"}

STORE = re.compile("(mysql|redis|s3)_")
STATEMENT = re.compile(r"\s*\(?\s*(SELECT|INSERT|UPDATE|DELETE(?! /)) ")  # not a route

IN_CONTEXTS = [file for context in CONTEXTS for file in sorted((PLAZA / context).rglob("*.py"))]
HANDLERS = sorted(
    f for kind in ("queue", "schedule", "ops") for f in (FUNCTIONS / kind).rglob("*.py")
)


# top-level package -> the ones that it may import besides itself
PACKAGES = {
    "cli": set[str](),
    "deploy": {"cli", "plaza"},
    "ops": {"cli", "plaza"},
    "local": {"cli", "plaza"},
    "tools": {"cli", "deploy", "local", "plaza"},
    "bench": {"cli", "deploy", "local", "ops", "plaza", "tools"},
    "tests": {"bench", "cli", "deploy", "functions", "local", "ops", "plaza", "tools"},
}
IN_PACKAGES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
LAYERS = ("stack", "audit", "load")
"""Packages of local/; each imports those before it. Modules of local/ itself import all."""

SCHEDULES = sorted((FUNCTIONS / "schedule").rglob("*.py"))


def shown(file: Path) -> str:
    return str(file.relative_to(ROOT))


def context_of(parts: Sequence[str]) -> str:
    """Return the context of a dotted name of Plaza, as ``wing/context``; infra is one."""
    return "infra" if parts[1] == "infra" else "/".join(parts[1:3])


def exported(context: str) -> set[str]:
    for node in tree_of(PLAZA / context / "__init__.py").body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def modules_of(context: str) -> set[str]:
    return {file.stem for file in (PLAZA / context).glob("*.py")}


def test_contexts_and_handlers_are_found() -> None:
    assert {"core/reactions", "people/auth", "infra/http"} & set(CONTEXTS) == {
        "core/reactions",
        "people/auth",
    }
    assert HANDLERS


@pytest.mark.parametrize("file", IN_PACKAGES, ids=shown)
def test_a_package_imports_what_it_may(file: Path) -> None:
    own = file.relative_to(ROOT).parts[0]
    ours = {"functions", "plaza", *PACKAGES}
    imported = {item.module.partition(".")[0] for item in imports_of(file)}
    assert imported & ours <= PACKAGES[own] | {own}


def test_packages_import_without_a_cycle() -> None:
    order = list(PACKAGES)
    for package, imported in PACKAGES.items():
        assert imported.isdisjoint(order[order.index(package) :])


@pytest.mark.parametrize("layer", LAYERS)
def test_a_package_of_the_local_stack_imports_those_below(layer: str) -> None:
    above = LAYERS[LAYERS.index(layer) + 1 :]
    for file in (ROOT / "local" / layer).rglob("*.py"):
        for imported in imports_of(file):
            package, _, module = f"{imported.module}.{imported.name}".partition(".")
            if package == "local":
                assert module.partition(".")[0] in LAYERS, f"{shown(file)} imports {module}"
                assert module.partition(".")[0] not in above, f"{shown(file)} imports {module}"


def test_only_the_emulator_of_the_local_stack_is_called_by_aws_clients() -> None:
    """Nothing in local/ reaches AWS: one function creates clients, and it takes their endpoint."""
    using = {
        shown(file)
        for file in (ROOT / "local").rglob("*.py")
        for imported in imports_of(file)
        if imported.module.partition(".")[0] == "boto3"
    }
    assert using == {"local/stack/aws.py"}


@pytest.mark.parametrize("file", product_files(), ids=shown)
def test_the_product_imports_no_tool_or_test(file: Path) -> None:
    for imported in imports_of(file):
        assert imported.module.partition(".")[0] not in {*PACKAGES, "functions"}


def test_one_module_creates_tls_contexts() -> None:
    """Each context loads the CAs of the system: 20 ms of CPU, so connections share one."""
    creators = {"create_default_context", "SSLContext", "_create_unverified_context"}
    results = [
        shown(file)
        for file in product_files()
        for node in nodes_of(file)
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) in creators
    ]
    assert set(results) == {"layers/common/python/plaza/infra/aws/tls.py"}


@pytest.mark.parametrize("file", sorted((PLAZA / "infra").rglob("*.py")), ids=shown)
def test_infra_imports_no_context(file: Path) -> None:
    for imported in imports_of(file):
        parts = [*imported.module.split("."), imported.name]
        assert parts[0] != "plaza" or parts[1] == "infra"


@pytest.mark.parametrize("file", IN_CONTEXTS, ids=shown)
def test_a_context_imports_public_names_of_others_only(file: Path) -> None:
    own = context_of(["plaza", *file.relative_to(PLAZA).parts])
    for imported in imports_of(file):
        parts = imported.module.split(".")
        if parts[0] != "plaza":
            continue
        context = context_of([*parts, imported.name])
        if context in (own, "infra"):
            continue
        if file.name == "schemas.py" and parts[3:] == ["schemas"]:
            continue  # a response of one context may contain one of another
        assert len(parts) <= 4, f"{imported.module} is private to {context}"
        if len(parts) >= 3:
            offered = parts[3] if len(parts) == 4 else imported.name
            assert offered in exported(context), f"{context} does not export {offered}"
        assert not imported.name.startswith("_")


@pytest.mark.parametrize("file", IN_CONTEXTS, ids=shown)
def test_a_context_uses_public_attributes_of_others_only(file: Path) -> None:
    own = context_of(["plaza", *file.relative_to(PLAZA).parts])
    others = {
        imported.name: context
        for imported in imports_of(file)
        if (context := context_of(["plaza", *imported.module.split(".")[1:], imported.name]))
        in CONTEXTS
        and imported.module.count(".") == 1
        and context != own
    }
    for node in nodes_of(file):
        match node:
            case ast.Attribute(value=ast.Name(id=alias), attr=name) if alias in others:
                context = others[alias]
                assert name in exported(context), f"{context} does not export {name}"
                assert name not in modules_of(context), f"{file} may not have loaded {name}"


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_context_exports_only_names_that_it_has(context: str) -> None:
    tree = tree_of(PLAZA / context / "__init__.py")
    defined = {getattr(node, "name", None) for node in tree.body}
    imported = {a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    assert exported(context) <= defined | imported | modules_of(context)
    assert exported(context)


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_context_exports_no_store_and_no_type_of_a_store(context: str) -> None:
    assert not {name for name in exported(context) if STORE.match(name)}
    for imported in imports_of(PLAZA / context / "__init__.py"):
        is_type = imported.name.isidentifier() and imported.name != imported.name.lower()
        assert not (is_type and STORE.match(imported.module.split(".")[-1])), imported


def test_reactions_exports_at_most_sixteen_names_besides_its_kinds() -> None:
    assert len(exported("core/reactions") - {"KINDS", "kinds", *map(str.upper, KINDS)}) <= 16


def test_contexts_have_no_import_cycle() -> None:
    arrows = {
        own: {
            context_of([*imported.module.split("."), imported.name])
            for file in (PLAZA / own).rglob("*.py")
            for imported in imports_of(file)
            if imported.module.partition(".")[0] == "plaza"
        }
        - {own, "infra"}
        for own in CONTEXTS
    }
    while leaves := [context for context, uses in arrows.items() if not uses & set(arrows)]:
        for leaf in leaves:
            del arrows[leaf]
    assert not arrows


@pytest.mark.parametrize("file", product_files(), ids=shown)
def test_a_file_has_no_generic_name(file: Path) -> None:
    base = PLAZA if PLAZA in file.parents else FUNCTIONS
    assert not {file.stem, *file.relative_to(base).parent.parts} & FORBIDDEN_NAMES


@pytest.mark.parametrize(
    "file", [f for c in CONTEXTS if (f := PLAZA / c / "model.py").exists()], ids=shown
)
def test_a_model_does_no_io(file: Path) -> None:
    for imported in imports_of(file):
        assert imported.module.partition(".")[0] not in FORBIDDEN_IN_RULES
        assert not imported.name.startswith(("redis_", "mysql_"))
        assert imported.name not in {"redis", "mysql"}


@pytest.mark.parametrize("file", IN_CONTEXTS, ids=shown)
def test_sql_is_in_mysql_stores_only(file: Path) -> None:
    if file.stem.startswith("mysql_"):
        return
    for node in nodes_of(file):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not STATEMENT.match(node.value)


@pytest.mark.parametrize("file", HANDLERS, ids=shown)
def test_a_handler_is_short_and_does_no_io(file: Path) -> None:
    lines = len(file.read_text().splitlines())
    first = next(
        n for n in tree_of(file).body[1:] if not isinstance(n, ast.Import | ast.ImportFrom)
    )
    begins = min([first.lineno, *(item.lineno for item in getattr(first, "decorator_list", []))])
    assert lines - begins < MAX_LINES
    for imported in imports_of(file):
        parts = {*imported.module.split("."), imported.name}
        assert not parts & FORBIDDEN_IN_HANDLERS
        assert not any(part.startswith(("redis_", "mysql_")) for part in parts)


@pytest.mark.parametrize("file", sorted(FUNCTIONS.rglob("*.py")), ids=shown)
def test_a_function_uses_no_store_directly(file: Path) -> None:
    for imported in imports_of(file):
        assert imported.module.partition(".")[0] not in FORBIDDEN_IN_HANDLERS - {"json"}
        assert not imported.name.startswith(("redis_", "mysql_"))
        assert imported.module not in {"plaza.infra.redis.redis", "plaza.infra.mysql.mysql"}
        assert (imported.module, imported.name) not in {
            ("plaza.infra.redis", "redis"),
            ("plaza.infra.mysql", "mysql"),
        }


@pytest.mark.parametrize("file", product_files(), ids=shown)
def test_every_imported_module_of_plaza_exists(file: Path) -> None:
    for imported in imports_of(file):
        if imported.module.startswith("plaza."):
            assert module_file(imported.module).exists()


@pytest.mark.parametrize("file", SCHEDULES, ids=shown)
def test_a_schedule_runs_one_use_case_or_independent_jobs(file: Path) -> None:
    """A job that follows another in a handler would stop at its error: ``run_jobs`` runs both."""
    use_cases = {
        imported.name
        for imported in imports_of(file)
        if imported.module.startswith("plaza") and not imported.module.startswith("plaza.infra")
    }
    tree = tree_of(file)
    in_jobs = {
        id(node)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "run_jobs"
        for node in ast.walk(call)
    }
    called = [
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and id(node) not in in_jobs
        and any(getattr(part, "id", "") in use_cases for part in ast.walk(node.func))
    ]
    assert len(called) <= (0 if in_jobs else 1)
