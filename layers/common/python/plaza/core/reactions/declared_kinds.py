"""A deployment declares each kind that has reactions."""

from __future__ import annotations

from plaza.core.reactions import mysql_kinds
from plaza.core.reactions.kinds import KINDS, RESERVED
from plaza.infra.runtime.settings import BadSettings


def require_declared() -> None:
    """Raise BadSettings, with their names, if MySQL counts reactions of kinds, or to types of
    targets, that are not declared; MysqlDown. One statement."""
    missing = sorted(
        f"{kind} of {target_type}"
        for target_type, kind in mysql_kinds.read_counted()
        if kind not in RESERVED and (kind not in KINDS or target_type not in KINDS[kind].targets)
    )
    if missing:
        raise BadSettings(
            f"Kinds or TargetTypes lack {', '.join(missing)}, which have reactions; a kind can be"
            " closed instead"
        )
