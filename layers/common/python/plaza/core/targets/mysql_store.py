"""Targets in MySQL. Each function runs one statement at most; without a cursor it raises
MysqlDown."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

from plaza.core.targets.model import Existence, Mark, Visibility
from plaza.core.targets.types import TYPES
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor


def read_existence(targets: Collection[tuple[str, int]]) -> dict[tuple[str, int], Mark]:
    """Return the existence of each of ``targets``."""
    marks = dict.fromkeys(targets, Mark(Existence.MISSING))
    for target_type, target_id, is_deleted, external_id in _fetch("existing", targets):
        mark = Mark(Existence.DELETED) if is_deleted else Mark(Existence.LIVE, external_id)
        marks[target_type, target_id] = mark
    return marks


def read_hidden(targets: Collection[tuple[str, int]]) -> dict[tuple[str, int], Visibility]:
    """Return the targets that are hidden."""
    rows = _fetch("hidden", set(targets))
    return {(of, target_id): Visibility(*visibility) for of, target_id, *visibility in rows}


def read_owners(cursor: Cursor, targets: Collection[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Return the owner of each of ``targets``: the author, or the user itself."""
    [rows] = mysql.read_all(cursor, [select_owners(targets)])
    return owners_of(targets, rows)


def select_owners(targets: Collection[tuple[str, int]]) -> str:
    """Return the SELECT of the owners of ``targets``, for ``owners_of``."""
    return _select("owners", set(targets)) or "SELECT NULL, NULL FROM DUAL WHERE FALSE"


def owners_of(
    targets: Collection[tuple[str, int]], rows: Iterable[mysql.Row]
) -> dict[tuple[str, int], int]:
    """Return the owner of each of ``targets`` from the rows of ``select_owners``."""
    named = {target_type for target_type, _ in targets} & TYPES.keys()
    own = {name for name in named if not TYPES[name].selects.owners}
    return {target: target[1] for target in targets if target[0] in own} | {
        (target_type, target_id): owner
        for target_type, packed in rows
        for target_id, owner in sql.split_rows(packed)
    }


def _fetch(
    what: Literal["existing", "hidden"], targets: Collection[tuple[str, int]]
) -> Iterable[mysql.Row]:
    select = _select(what, targets)
    return mysql.fetch_all(select) if select else ()


def _select(
    what: Literal["existing", "owners", "hidden"], targets: Collection[tuple[str, int]]
) -> str:
    """Return the SELECTs of the types of ``targets`` as one, "" without any. Rows may name a type
    that this deployment left out: it has none."""
    return " UNION ALL ".join(
        [
            select.format(type=target_type, ids=ids)
            for target_type, ids in sql.render_ids_by_type(targets).items()
            if (declared := TYPES.get(target_type)) and (select := getattr(declared.selects, what))
        ]
    )
