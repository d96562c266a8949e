"""The TypeScript client: its own tests, its types, its size, and the package that is published."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.node import CLIENT, MODULES, needs_npm_packages, run_node, run_npm


@pytest.mark.parametrize("engine", [[], ["--import", "./test/old-engine.ts"]], ids=["new", "old"])
def test_its_unit_tests_pass(engine: list[str]) -> None:
    """The old engine has nothing of 2022 or later."""
    printed = run_node(*engine, "--test", "--test-reporter=tap", "test/*.test.ts", cwd=CLIENT)
    [passed] = re.findall(r"^# pass (\d+)$", printed, re.MULTILINE)
    assert int(passed) >= 50


@needs_npm_packages
@pytest.mark.parametrize("file", ["contract.ts", "resources.ts"])
def test_its_types_and_named_methods_are_those_of_the_contract(file: str) -> None:
    printed = run_node("scripts/generate.ts", "--stdout", file, cwd=CLIENT)
    assert printed == (CLIENT / "src" / file).read_text(), "`make web` generates it"


@needs_npm_packages
def test_it_is_typed_strictly() -> None:
    run_node(MODULES / "typescript" / "bin" / "tsc", "--project", ".", cwd=CLIENT)


@needs_npm_packages
def test_it_is_no_larger_than_its_limit() -> None:
    printed = run_node("scripts/size.ts", cwd=CLIENT)
    assert re.fullmatch(r"plaza-client: \d+ bytes gzipped, of at most 11264\n", printed)


@pytest.fixture(scope="module")
def packed() -> Any:
    """What npm would publish, which it builds before."""
    return json.loads(run_npm("pack", "--dry-run", "--json", cwd=CLIENT))


@needs_npm_packages
def test_the_package_has_the_built_modules_their_types_their_sources_and_nothing_else(
    packed: Any,
) -> None:
    [package] = packed.values() if isinstance(packed, dict) else packed
    modules = {file.stem for file in (CLIENT / "src").glob("*.ts")}
    suffixes = (".js", ".js.map", ".d.ts")
    built = {f"{module}{suffix}" for module in modules for suffix in suffixes}
    assert {file["path"] for file in package["files"]} == {
        *(f"dist/{folder}{name}" for folder in ("", "cjs/") for name in built),
        "dist/cjs/package.json",
        "package.json",
        "README.md",
        "LICENSE",
    }
    for name in ("client.js.map", "cjs/client.js.map"):
        [source] = json.loads((CLIENT / "dist" / name).read_text())["sourcesContent"]
        assert source == (CLIENT / "src" / "client.ts").read_text()


USE = " console.log(new Plaza('http://127.0.0.1').session, ProblemError.name);"


@needs_npm_packages
@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize(
    "words",
    [
        [
            "--input-type=module",
            f"--eval=import {{ Plaza, ProblemError }} from 'plaza-client';{USE}",
        ],
        [
            "--input-type=commonjs",
            "--no-experimental-require-module",  # as in Node before 22.12
            f"--eval=const {{ Plaza, ProblemError }} = require('plaza-client');{USE}",
        ],
    ],
    ids=["import", "require"],
)
def test_it_can_be_imported_and_required(words: list[str]) -> None:
    assert run_node(*words, cwd=CLIENT) == "null ProblemError\n"


@needs_npm_packages
@pytest.mark.usefixtures("packed")
def test_tools_that_read_no_exports_find_its_types_and_modules() -> None:
    package = json.loads((CLIENT / "package.json").read_text())
    for name in ("main", "module", "types"):
        assert (CLIENT / package[name]).is_file(), name
    read = "console.log(require('plaza-client/package.json').name)"
    assert run_node("--input-type=commonjs", f"--eval={read}", cwd=CLIENT) == "plaza-client\n"


@needs_npm_packages
@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize(
    ("module", "resolution"),
    [("NodeNext", "NodeNext"), ("CommonJS", "node10"), ("ESNext", "bundler")],
)
def test_its_types_are_found_by_each_resolution(
    tmp_path: Path, module: str, resolution: str
) -> None:
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "plaza-client").symlink_to(CLIENT)
    (tmp_path / "use.ts").write_text(
        'import { Plaza } from "plaza-client";\n'
        'export const liked: Promise<boolean> = new Plaza("https://api.example").posts\n'
        '  .like("12").then((like) => like.liked);\n'
    )
    options = ["--strict", "--noEmit", "--target", "ES2022", "--preserveSymlinks"]
    compiler = MODULES / "typescript" / "bin" / "tsc"
    ways = ["--module", module, "--moduleResolution", resolution]
    run_node(compiler, *options, *ways, "use.ts", cwd=tmp_path)


@needs_npm_packages
@pytest.mark.usefixtures("packed")
def test_what_is_published_has_no_fault_that_publint_or_arethetypeswrong_knows(
    tmp_path: Path,
) -> None:
    run_npm("pack", "--ignore-scripts", "--pack-destination", str(tmp_path), cwd=CLIENT)
    [package] = tmp_path.glob("*.tgz")
    publint = MODULES / "publint" / "src" / "cli.js"
    assert "All good!" in run_node(publint, "run", package, "--strict", "--pack", "false")
    types = MODULES / "@arethetypeswrong" / "cli" / "dist" / "index.js"
    assert "No problems found" in run_node(types, package, "--no-emoji", "--no-color")


@needs_npm_packages
@pytest.mark.usefixtures("packed")
def test_it_needs_of_a_browser_only_what_react_native_has() -> None:
    received, *sent = run_node("test/old-host.ts", cwd=CLIENT).splitlines()
    assert json.loads(received) == {
        "ids": ["4", "3"],
        "active": True,
        "total": 1,
        "isPlazaError": True,
    }
    assert sent == [
        "GET https://api.test/feed?limit=1",
        "GET https://api.test/feed?limit=1&cursor=c1",
        "PUT https://api.test/posts/4/likes/me",
    ]


def test_the_package_has_no_dependency_and_can_be_published_with_provenance() -> None:
    package = json.loads((CLIENT / "package.json").read_text())
    assert "dependencies" not in package
    assert package["publishConfig"] == {"access": "public", "provenance": True}
    assert package["repository"]["directory"] == "clients/typescript"


@pytest.mark.deep
@needs_npm_packages
@pytest.mark.parametrize("source", ["folder", "tarball"])
def test_the_package_of_a_checkout_installs_and_imports(tmp_path: Path, source: str) -> None:
    package = str(CLIENT)
    if source == "tarball":
        made = run_npm("pack", "--json", "--pack-destination", str(tmp_path), cwd=CLIENT)
        package = str(tmp_path / json.loads(made)[0]["filename"])
    app = tmp_path / "app"
    app.mkdir()
    (app / "package.json").write_text('{"type": "module"}')
    if source == "folder":
        shutil.rmtree(CLIENT / "dist", ignore_errors=True)
    run_npm("install", package, cwd=app)
    (app / "main.js").write_text('import { Plaza } from "plaza-client"; console.log(typeof Plaza);')
    (app / "main.cjs").write_text('console.log(typeof require("plaza-client").Plaza);')
    assert run_node("main.js", cwd=app) == run_node("main.cjs", cwd=app) == "function\n"


def test_an_install_runs_no_typescript() -> None:
    """Node 20 runs JavaScript only."""
    scripts = json.loads((CLIENT / "package.json").read_text())["scripts"]
    for name in {"prepare", "prepack", "install", "postinstall"} & scripts.keys():
        assert not re.search(r"\.ts\b", scripts[name])
