"""The TypeScript client: its own tests, its types, its size, and the package that is published."""

from __future__ import annotations

import json
import re

from tests.support.node import CLIENT, MODULES, needs_npm_packages, run_node, run_npm


def test_its_unit_tests_pass() -> None:
    printed = run_node("--test", "--test-reporter=tap", "test/*.test.ts", cwd=CLIENT)
    [passed] = re.findall(r"^# pass (\d+)$", printed, re.MULTILINE)
    assert int(passed) >= 40


@needs_npm_packages
def test_its_types_are_those_of_the_contract() -> None:
    printed = run_node("scripts/generate.ts", "--stdout", cwd=CLIENT)
    assert printed == (CLIENT / "src" / "contract.ts").read_text(), "`make web` generates it"


@needs_npm_packages
def test_it_is_typed_strictly() -> None:
    run_node(MODULES / "typescript" / "bin" / "tsc", "--project", ".", cwd=CLIENT)


@needs_npm_packages
def test_it_has_at_most_6_kb() -> None:
    printed = run_node("scripts/size.ts", cwd=CLIENT)
    assert re.fullmatch(r"plaza-client: \d+ bytes gzipped, of at most 6144\n", printed)


@needs_npm_packages
def test_the_package_has_the_built_modules_their_types_and_nothing_else() -> None:
    packed = json.loads(run_npm("pack", "--dry-run", "--json", cwd=CLIENT))
    [package] = packed.values() if isinstance(packed, dict) else packed
    modules = {file.stem for file in (CLIENT / "src").glob("*.ts")}
    built = {f"dist/{module}{suffix}" for module in modules for suffix in (".js", ".d.ts")}
    assert {file["path"] for file in package["files"]} == built | {
        "package.json",
        "README.md",
        "LICENSE",
    }
    script = (
        "import { Plaza, ProblemError } from 'plaza-client';"
        " console.log(new Plaza('http://127.0.0.1').session, ProblemError.name);"
    )
    assert run_node("--input-type=module", "--eval", script, cwd=CLIENT) == "null ProblemError\n"


def test_the_package_has_no_dependency_and_can_be_published_with_provenance() -> None:
    package = json.loads((CLIENT / "package.json").read_text())
    assert "dependencies" not in package
    assert package["publishConfig"] == {"access": "public", "provenance": True}
    assert package["repository"]["directory"] == "clients/typescript"
