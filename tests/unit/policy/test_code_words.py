"""Words in code style exist in the code: in every document, and in the headers of scripts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.policy.modules import ROOT, nodes_of, tracked
from tests.unit.policy.test_lua import SCRIPTS, code_of, header_of

DOCUMENTS = sorted(
    file
    for pattern in ("*.md", ".github/SECURITY.md", "docs/**/*.md", "[a-z]*/README.md")
    for file in ROOT.glob(pattern)
    if file.name not in ("CHANGELOG.md", "mutants.md")  # the past; generated
)
NO_CODE = {"docs", "events", "tests", "bench", "web", "clients"}
"""Folders whose words do not make a word of a document right."""
PYTHON_CLIENT = ROOT / "clients" / "python" / "src"

WORD = re.compile(r"(?<!\w)[A-Za-z_][A-Za-z0-9_]*")
SPAN = re.compile(r"`([^`]+)`")
BLOCK = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
# A command (see test_documents), a header of HTTP, an address, a test (see test_asvs).
NO_NAME = re.compile(
    r"(?:.*python -m|make|sam|aws|curl|git|export|kill|redis-cli|record\() ?.*"
    r"|(?:[A-Z][a-z]*-)+[A-Z][A-Za-z]+(?:: .*)?|[A-Z][a-z]+: .*"
    r"|.*://.*|test_\w+"
)
KEYWORD = re.compile(r"[A-Z0-9]+|v\d")  # of SQL and Redis, and a placeholder: ID, FILE

FOREIGN = {
    "MySQL and MariaDB": (
        "in_predicate_conversion_threshold, log_bin_compress, binlog_transaction_compression,"
        " max_connections, schema_migration, GET_LOCK, JSON_TABLE, plaza_app_2,"
        " rds_set_configuration, retention, innodb_snapshot_isolation,"
        " max_allowed_packet"
    ),
    "Redis": "hotkeys, repl",
    "AWS": (
        "trace_id, function_request_id, error_reason, ForEach, ImportValue, Unauthorized,"
        " CountedRequests, Qualifier, stats, Invoke, LatestRestorableTime, Throttling,"
        " AuthorizationError, DELETE_FAILED, ROLLBACK_FAILED, UPDATE_ROLLBACK_COMPLETE,"
        " UPDATE_ROLLBACK_FAILED, UPDATE_ROLLBACK_IN_PROGRESS"
    ),
    "Python, pydantic, Powertools": "pyc, raise, model_construct, single_metric, Router, Model",
    "OpenAPI": "x, enumUnknownDefaultCase",
    "OpenSSL": "VERIFY_X509_STRICT, keyCertSign, certificate, verify",
    "HTTP and SQL notation": "q, w, r, t, a, b, c, d, n, deprecated, Deprecation, Link, Sunset",
    "browsers and the TypeScript client": "await, textContent, listPosts, onSession, webStore",
    "Stream and Mastodon": "enforce_unique, status_stats, untrusted_favourites_count",
    "other programs": (
        "localStorage, likeButton, element, yml, zcat, repository, ts, brew, HTTPS_PROXY, checkout"
    ),
    "tests": (
        "PLAZA_TEST_MYSQLD, PLAZA_TEST_SNAPSHOT_ISOLATION, PLAZA_TEST_DOCKER, PLAZA_FAULTS_SEED,"
        " PLAZA_TEST_SERVERS, monkeypatch"
    ),
    "the app of the guide": "person, recipe, recipe_like, fan",
    "benches": "round, trips, quick",
    "the marks of headers and migrations": "Bounded, outside, initial",
}
"""Words that are not of this code."""
FOREIGN_WORDS = {word for words in FOREIGN.values() for word in words.split(", ")}


def words_of_python(file: Path) -> Iterator[str]:
    """Yield what a module defines, uses of others, and texts without a blank; no local names."""
    for node in nodes_of(file):
        match node:
            case ast.FunctionDef(name=word) | ast.ClassDef(name=word) | ast.arg(arg=word):
                yield word
            case ast.Attribute(attr=word) | ast.keyword(arg=str(word)):
                yield word
            case ast.AnnAssign(target=ast.Name(id=word)):
                yield word
            case ast.Assign(targets=[ast.Name(id=word)]) if word.isupper():
                yield word
            case ast.alias(name=text):
                yield from text.split(".")
            case ast.Constant(value=str(text)) if " " not in text:
                yield from WORD.findall(text)


COMMENTS = {
    ".lua": re.compile(r"--\[\[.*?\]\]|--[^\n]*", re.DOTALL),
    ".sql": re.compile(r"--[^\n]*"),
    ".yaml": re.compile(r"#.*|Description:.*"),
    ".toml": re.compile(r"#.*"),
    ".mk": re.compile(r"#.*"),
    "": re.compile(r"#.*"),  # Makefile
}


@pytest.fixture(scope="module")
def paths() -> list[str]:
    """All files, as ``/docs/limits.md``."""
    return [f"/{file.relative_to(ROOT)}" for file in tracked()]


@pytest.fixture(scope="module")
def words() -> set[str]:
    """The names in the product, its tools, its schema and its templates."""
    names: set[str] = set()
    for file in tracked():
        names |= {file.stem, *file.relative_to(ROOT).parts}
        if file.relative_to(ROOT).parts[0] in NO_CODE and not file.is_relative_to(PYTHON_CLIENT):
            continue
        if file.suffix == ".py":
            names.update(words_of_python(file))
        elif file.name == "openapi.json":
            names.update(re.findall(r'"(\w+)":', file.read_text()))
        elif file.suffix in COMMENTS and file.name != "LICENSE":
            text = file.read_text(errors="replace")
            names.update(WORD.findall(COMMENTS[file.suffix].sub("", text)))
    return {word for word in names if len(word) > 1} | FOREIGN_WORDS


def unknown(span: str, words: set[str]) -> list[str]:
    """Return the words of a span that the code does not have."""
    if NO_NAME.fullmatch(span):
        return []
    return [
        word
        for word in WORD.findall(span)
        if word not in words and not KEYWORD.fullmatch(word) and word.strip("_") == word
    ]


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_words_in_code_style_exist(file: Path, words: set[str]) -> None:
    spans = SPAN.findall(BLOCK.sub("", file.read_text()))
    unknown_words = {span: unknown(span.replace("\n", " "), words) for span in spans}
    assert {span: missing for span, missing in unknown_words.items() if missing} == {}


def test_a_name_that_is_gone_is_found(words: set[str]) -> None:
    assert unknown("base and outbox_waiting", words) == ["outbox_waiting"]
    assert unknown("asked[actor] = s", words) == ["s"]


PATH = re.compile(
    r"(?<![\w./<>{}*-])[\w.-]+(?:/[\w.-]+)+\.(?:py|lua|sql|ya?ml|toml|md|json|tsx?|txt)\b"
)


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_in_code_style_exist(file: Path, paths: list[str]) -> None:
    named = [
        path
        for span in SPAN.findall(BLOCK.sub("", file.read_text()))
        for path in PATH.findall(span)
    ]
    missing = [
        name
        for name in named
        if not name.startswith((".", "https"))
        and not any(path.endswith(f"/{name}") for path in paths)
    ]
    assert missing == []


# ---------------------------------------------------------------- headers of scripts

HASH = re.compile(r" hash: +([^\n]*)")
CALL = re.compile(r"redis\.call\((?='H\w+')|\b(?:read_meta|begin_build|touch_build|finish_build)\(")


def fields_of(code: str) -> set[str]:
    """Return the texts in commands on hashes."""
    fields: set[str] = set()
    for call in CALL.finditer(code):
        end, depth = call.end(), 1
        while depth:
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        fields.update(re.findall(r"'(\w+)'", code[call.end() : end]))
    return fields


def test_names_in_headers_exist(words: set[str]) -> None:
    """Of keys and arguments; a header itself names what the script returns."""
    named = {
        file.name: re.findall(r"\b[a-z]+_[a-z_]+\b", header_of(file).partition("\n  Returns ")[0])
        for file in SCRIPTS
    }
    assert {
        name: missing for name, listed in named.items() if (missing := set(listed) - words)
    } == {}


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_a_header_lists_fields_that_the_script_uses(file: Path) -> None:
    """``hash: term, mode, ...``; without an ellipsis these are all fields."""
    used = fields_of(code_of(file))
    for listed in HASH.findall(header_of(file)):
        if "->" not in re.split("[,;]", listed)[0]:
            names = [part.strip() for part in re.split("[,;:]", listed)]
            missing = {name for name in names if re.fullmatch("[a-z_]+", name)} - used
            assert missing == set(), listed
