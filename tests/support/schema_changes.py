"""What a migration may do, and what it may not, by example. Each changes the table ``example``."""

from __future__ import annotations

import re

from plaza.infra.mysql.migrations import split_statements

TABLE = """CREATE TABLE example (
    id BIGINT NOT NULL, name VARCHAR(10) NOT NULL, note VARCHAR(10) NULL,
    PRIMARY KEY (id), KEY by_note (note)
)"""

EXPANDING = (
    "CREATE TABLE IF NOT EXISTS example_new (id BIGINT NOT NULL, PRIMARY KEY (id))",
    "INSERT IGNORE INTO example (id, name) VALUES (99, 'a')",
    "ALTER TABLE example ADD COLUMN more BIGINT NULL",
    "ALTER TABLE example ADD COLUMN a INT NOT NULL DEFAULT 0 COMMENT 'a, b', ADD KEY by_a (a)",
    "ALTER TABLE example ADD COLUMN (more INT NULL, last DATETIME(6) NOT NULL DEFAULT NOW(6))",
    "ALTER TABLE example ADD INDEX by_name (name, id)",
    "ALTER TABLE example ALTER COLUMN name SET DEFAULT ''",
    "ALTER TABLE example ADD COLUMN more BIGINT NULL, ALGORITHM=INSTANT",
)
"""Code of the version before works with the schema after each of these."""

CONTRACTING = (
    "ALTER TABLE example DROP COLUMN note",
    "ALTER TABLE example DROP KEY by_note",
    "ALTER TABLE example DROP INDEX by_note, DROP COLUMN note",
    "DROP TABLE IF EXISTS example",
    "DELETE FROM example",
)
"""Allowed below the line `-- contract: after version X`: code from version X on needs none of it,
and works with the schema before."""

BREAKING = (
    "ALTER TABLE example ADD COLUMN more BIGINT NOT NULL",
    "ALTER TABLE example ADD COLUMN (more BIGINT NULL, last BIGINT NOT NULL)",
    "ALTER TABLE example ADD UNIQUE KEY one_note (note)",
    "ALTER TABLE example ADD CONSTRAINT short CHECK (LENGTH(name) < 3)",
    "ALTER TABLE example ADD CHECK (LENGTH(name) < 3)",
    "ALTER TABLE example CHANGE COLUMN note remark VARCHAR(10) NULL",
    "ALTER TABLE example RENAME COLUMN note TO remark",
    "ALTER TABLE example MODIFY COLUMN note VARCHAR(1) NULL",
    "ALTER TABLE example ADD COLUMN more BIGINT NULL, DROP COLUMN note",
    "RENAME TABLE example TO example_new",
    "UPDATE example SET note = name",
    "CREATE TABLE example_new (id BIGINT NOT NULL, PRIMARY KEY (id))",
)
"""Allowed nowhere: they break code of a version in use, or can't be repeated."""

GROWING = ("reaction", "reaction_log")
"""Tables with a row for each reaction of the past. What takes time for each row of them is run
outside the deploy."""

INSTANT = (
    "ALTER TABLE {table} ADD COLUMN more BIGINT NULL, ALGORITHM=INSTANT",
    "ALTER TABLE {table} ADD COLUMN more BIGINT NOT NULL DEFAULT 0,"
    " ADD COLUMN note VARCHAR(10) NULL, ALGORITHM=INSTANT",
)
"""Allowed for a growing table in a deploy: columns at the end. The server refuses the statement if
it would have to copy or to read the rows."""

NOT_INSTANT = (
    "ALTER TABLE {table} ADD COLUMN more BIGINT NULL",
    "ALTER TABLE {table} ADD COLUMN more BIGINT NULL AFTER kind, ALGORITHM=INSTANT",
    "ALTER TABLE {table} ADD COLUMN more BIGINT NULL FIRST, ALGORITHM=INSTANT",
    "ALTER TABLE {table} ADD KEY by_more (version)",
    "ALTER TABLE {table} ADD KEY by_more (version), ALGORITHM=INPLACE",
    "ALTER TABLE {table} ALTER COLUMN state SET DEFAULT 1",
)
"""Allowed for a growing table in a file with the line `-- outside the deploy`."""

_OUTSIDE = re.compile(r"^-- outside the deploy$", re.MULTILINE)
_OF_GROWING = re.compile(rf"(ALTER TABLE|DELETE FROM|DROP TABLE IF EXISTS) ({'|'.join(GROWING)})\b")
_ADDS_AT_THE_END = re.compile(r"ADD COLUMN (?!.*\b(AFTER|FIRST)\b)", re.DOTALL)
_CONTRACT = re.compile(r"^-- contract: after version \d+\.\d+\.\d+$", re.MULTILINE)
_EXPANDS = re.compile(r"(CREATE TABLE IF NOT EXISTS|INSERT IGNORE INTO) ")
_CONTRACTS = re.compile(r"(DROP TABLE IF EXISTS|DELETE FROM) ")
_ALTER = re.compile(r"ALTER TABLE \w+\s+(.*)", re.DOTALL)
_ADDS = re.compile(r"ADD (COLUMN\b|(KEY|INDEX) \w+ \()")
_INSTANT = "ALGORITHM=INSTANT"
_HAS_DEFAULT = re.compile(r"ALTER COLUMN \w+ SET DEFAULT ")
_DROPS = re.compile(r"DROP (COLUMN|KEY|INDEX) \w+$")


def find_refused(sql: str) -> list[str]:
    """Return the statements of a migration that are not allowed."""
    head, *below = _CONTRACT.split(sql, maxsplit=1)
    refused = [statement for statement in split_statements(head) if not _expands(statement)]
    return refused + [
        statement for statement in split_statements("".join(below)) if not _contracts(statement)
    ]


def find_slow(sql: str) -> list[str]:
    """Return the statements of a migration that a deploy must not run on a table that grows."""
    if _OUTSIDE.search(sql):
        return []
    changes = [statement for statement in split_statements(sql) if _OF_GROWING.match(statement)]
    return [statement for statement in changes if not _is_instant(statement)]


def _is_instant(statement: str) -> bool:
    alter = _ALTER.match(statement)
    *actions, last = _split(alter[1]) if alter else [""]
    return last == _INSTANT and all(_ADDS_AT_THE_END.match(action) for action in actions)


def _expands(statement: str) -> bool:
    if alter := _ALTER.match(statement):
        return all(_is_harmless(action) for action in _split(alter[1]))
    return bool(_EXPANDS.match(statement))


def _contracts(statement: str) -> bool:
    if alter := _ALTER.match(statement):
        return all(_DROPS.match(action) for action in _split(alter[1]))
    return bool(_CONTRACTS.match(statement))


def _is_harmless(action: str) -> bool:
    if action == _INSTANT or _HAS_DEFAULT.match(action):
        return True
    if not _ADDS.match(action):
        return False
    columns = action.removeprefix("ADD COLUMN").strip()
    parts = _split(columns[1:-1]) if columns.startswith("(") else [columns]
    return all("NOT NULL" not in part or "DEFAULT" in part for part in parts)


def _split(actions: str) -> list[str]:
    """Split a list at its commas, not at those in parentheses or texts."""
    texts = re.sub(r"'(?:[^']|'')*'", lambda text: "'" + "_" * (len(text[0]) - 2) + "'", actions)
    parts, depth, begin = [], 0, 0
    for index, character in enumerate(texts):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(texts[begin:index].strip())
            begin = index + 1
    return [*parts, texts[begin:].strip()]
