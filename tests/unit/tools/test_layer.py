"""The layer as `sam build` builds it for AWS, on a machine of any processor."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from cli.paths import LAYER, ROOT
from plaza.infra.redis.scripts import load_script
from tools.bytecode import COMPILED, IMPORTING

LAYERS = LAYER.parent
FUNCTIONS = ROOT / "functions"
AARCH64 = 183  # in ELF
UNCHECKED = 0b01
IMPORT = "import sys; sys.dont_write_bytecode = True; from tools import bytecode"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The layer for arm64. The end-to-end tests use the one for this machine."""
    artifacts = tmp_path_factory.mktemp("layer")
    command = ["make", "--makefile", "arm64/Makefile", "build-CommonLayer"]
    command += [f"ARTIFACTS_DIR={artifacts}", f"PYTHON={sys.executable}"]
    completed = subprocess.run(command, cwd=LAYERS, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return artifacts / "python"


@pytest.mark.deep
def test_compiled_extensions_are_for_the_processor_of_the_functions(built: Path) -> None:
    extensions = sorted(built.rglob("*.so"))
    assert {extension.parent.name for extension in extensions} == {
        "hiredis",
        "msgspec",
        "pydantic_core",
    }
    for extension in extensions:
        assert int.from_bytes(extension.read_bytes()[18:20], "little") == AARCH64, extension


@pytest.mark.deep
def test_extensions_need_no_newer_libc_than_lambda_has(built: Path) -> None:
    """Amazon Linux 2023 has 2.34; a wheel for another Linux would fail at the import."""
    for extension in built.rglob("*.so"):
        versions = re.findall(rb"GLIBC_2\.(\d+)\b", extension.read_bytes())
        assert max(int(version) for version in versions) <= 34, extension


@pytest.mark.deep
def test_bytecode_is_unchecked_and_names_no_directory_of_the_build(built: Path) -> None:
    for file in ("plaza/core/reactions/react.py", "redis/client.py"):
        bytecode = Path(cache_from_source(str(built / file))).read_bytes()
        assert int.from_bytes(bytecode[4:8], "little") == UNCHECKED
        assert f"/opt/python/{file}".encode() in bytecode
        assert str(built).encode() not in bytecode


@pytest.mark.deep
def test_the_layer_has_complete_scripts_of_the_same_sha_as_here(built: Path) -> None:
    here = sorted(path for path in LAYER.rglob("*.lua") if not path.name.endswith(".inc.lua"))
    assert sorted(built.rglob("*.lua")) == [built / path.relative_to(LAYER) for path in here]
    code = (
        "import json, sys; from pathlib import Path\n"
        "from plaza.infra.redis.scripts import load_script\n"
        "print(json.dumps([load_script(Path(path)).sha for path in json.load(sys.stdin)]))\n"
        "assert 'plaza.infra.redis.script_assembly' not in sys.modules"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([str(built / path.relative_to(LAYER)) for path in here]),
        env={"PYTHONPATH": str(built)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(completed.stdout) == [load_script(path).sha for path in here]


@pytest.mark.deep
def test_the_layer_with_its_bytecode_is_at_most_22_mb(built: Path) -> None:
    assert sum(file.stat().st_size for file in built.rglob("*") if file.is_file()) <= 22e6


@pytest.mark.deep
def test_the_layer_has_all_modules_that_functions_import(built: Path) -> None:
    """Given that it lacks parts of packages which no function imports."""
    imported = list_in_new_process(list_functions())
    assert len(imported) > len(COMPILED.read_text().split())
    assert [file for file in imported if not (built / file).exists()] == []


@pytest.mark.deep
def test_the_layer_has_a_licence_and_a_version_of_each_package(built: Path) -> None:
    packages = list(built.glob("*.dist-info"))
    assert packages
    for package in packages:
        names = {file.name.upper() for file in package.rglob("*") if file.is_file()}
        assert "METADATA" in names, package
        named_in_metadata = package.name.startswith("mysql_replication-")
        assert named_in_metadata or any("LICENSE" in name for name in names), package


def test_no_module_that_functions_import_is_left_out() -> None:
    """The modules are deleted from the packages of a built layer by the patterns of layer.mk."""
    command = ["make", "--makefile", "arm64/Makefile", "--eval", "unused: ; @echo '$(UNUSED)'"]
    completed = subprocess.run(
        [*command, "unused"], cwd=LAYERS, capture_output=True, text=True, check=True
    )
    patterns = completed.stdout.split()
    assert len(patterns) > 20
    left_out = [
        file
        for file in list_in_new_process(list_functions())
        for pattern in patterns
        if fnmatch(file, pattern) or file.startswith(f"{pattern}/")
    ]
    assert left_out == []


def test_the_listed_modules_are_those_that_functions_import() -> None:
    """`python -m tools bytecode` lists them."""
    assert list_in_new_process(IMPORTING) == COMPILED.read_text().split()


def list_functions() -> tuple[str, ...]:
    """Return ``api/reactions`` and so on."""
    return tuple(
        str(file.parent.relative_to(FUNCTIONS)) for file in sorted(FUNCTIONS.glob("*/*/app.py"))
    )


def list_in_new_process(functions: tuple[str, ...]) -> list[str]:
    code = f"{IMPORT}; print(*bytecode.list_imported({functions}))"
    completed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return completed.stdout.split()


@pytest.mark.parametrize("architecture", ["arm64", "x86_64"])
def test_functions_are_built_in_a_path_with_a_space(tmp_path: Path, architecture: str) -> None:
    build = shutil.copytree(FUNCTIONS / "build", tmp_path / "a b")
    makefile = str(build / architecture / "Makefile")
    command = ["make", "--makefile", makefile, "--dry-run", "build-Any"]
    completed = subprocess.run(
        [*command, "ARTIFACTS_DIR=built", f"PYTHON={sys.executable}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert 'cp app.py "built"' in completed.stdout
