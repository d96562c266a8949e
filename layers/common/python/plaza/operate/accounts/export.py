"""Export what the tables store about a user, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plaza.infra.contexts import offers
from plaza.infra.http.callers import Charge, no_charge
from plaza.infra.http.cursors import BadCursor, pack_cursor, unpack_cursor
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import record
from plaza.operate.accounts.model import EXPORT_CURSORS, ExportCursor

if TYPE_CHECKING:
    from plaza.core.targets import target_ids
    from plaza.infra.mysql.export_sections import ExportedRow, Section
else:  # profiles need no module of another context
    target_ids = LazyModule("plaza.core.targets.target_ids")

SECTIONS_PER_TOKEN = 5  # that a page reads for each token


def list_sections() -> list[Section]:
    """Return the sections of all contexts, in the order of an export. A new one may stand anywhere:
    cursors have the names."""
    return [section for _, sections in offers("export") for section in sections]


def read_page(
    user_id: int, cursor: str | None, limit: int, charge: Charge = no_charge
) -> tuple[list[ExportedRow], str | None]:
    """Return up to ``limit`` rows past ``cursor``, and the cursor of the last, None at the end.

    One statement a section, and what ``target_ids.render_ids`` costs; a token is charged after each
    ``SECTIONS_PER_TOKEN``. Raises BadInput for a cursor of another list, or of a section that this
    version does not have; MysqlDown, TooManyRequests.
    """
    exported, following = _read_rows(user_id, cursor, limit, charge)
    _name_targets(exported)
    return exported, following


def _read_rows(
    user_id: int, cursor: str | None, limit: int, charge: Charge
) -> tuple[list[ExportedRow], str | None]:
    order = {section.cursor_name: section for section in list_sections()}
    start = _parse(cursor) if cursor else ExportCursor(next(iter(order)), ())
    names = [*order]
    try:
        names = names[names.index(start.section) :]
        if start.key:
            order[start.section].parse_key(start.key)
    except ValueError:
        raise BadCursor from None
    exported: list[ExportedRow] = []
    last = start
    for number, name in enumerate(names):
        if number and number % SECTIONS_PER_TOKEN == 0:
            charge(1)
        after = start.key if name == start.section else ()
        for row in order[name].read(user_id, after, limit + 1 - len(exported)):
            if len(exported) == limit:
                return exported, pack_cursor(EXPORT_CURSORS.encode(last))
            exported.append(row)
            last = ExportCursor(name, row.key)
    return exported, None


def _name_targets(rows: Sequence[ExportedRow]) -> None:
    """Replace the numbers of targets of the app by their ids."""
    named = [
        (fields, id_name, (fields[type_name], int(fields[id_name])))
        for _, fields, _ in rows
        for type_name, id_name in (("target_type", "target_id"), ("subject_type", "subject_id"))
        if type_name in fields
    ]
    ids = target_ids.render_ids(target for _, _, target in named)
    for fields, id_name, target in named:
        fields[id_name] = ids[target]


def read_page_of(
    user_id: int, operator_id: int, cursor: str | None, limit: int, charge: Charge
) -> tuple[list[ExportedRow], str | None]:
    """Return a page about a user for the operator ``operator_id``, whose request is recorded; as
    ``read_page``."""
    record("export_by_operator", user_id=user_id, operator_id=operator_id)
    return read_page(user_id, cursor, limit, charge)


def _parse(cursor: str) -> ExportCursor:
    """Parse a cursor. Raises BadInput."""
    [text] = unpack_cursor(cursor, (str,))
    return EXPORT_CURSORS.decode(text)
