"""Kinds of reactions that MySQL has: a deployment declares each of them."""

from __future__ import annotations

from plaza.counters import COMMENT
from plaza.infra.mysql import mysql
from plaza.infra.runtime.settings import BadSettings
from plaza.reactions.kinds import KINDS


def require_declared() -> None:
    """Raise BadSettings, with their names, if MySQL counts reactions of kinds, or to types of
    targets, that are not declared; MysqlDown. One statement, a row for each type and kind."""
    counted = mysql.fetch_all(
        "SELECT DISTINCT target_type, kind FROM counter FORCE INDEX (by_ranked)"
    )
    missing = sorted(
        f"{kind} of {target_type}"
        for target_type, kind in counted
        if kind != COMMENT and (kind not in KINDS or target_type not in KINDS[kind].targets)
    )
    if missing:
        raise BadSettings(
            f"Kinds lacks {', '.join(missing)}, which have reactions; a kind can be closed instead"
        )
