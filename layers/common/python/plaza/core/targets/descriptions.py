"""Descriptions of targets of any type, as their owners store them now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from plaza.core.targets.model import Description
from plaza.core.targets.types import TYPES, TypedId
from plaza.infra.contexts import load

__all__ = ["describe_all"]


def describe_all(targets: Iterable[TypedId]) -> dict[TypedId, Description]:
    """Return the descriptions of ``targets`` that are not deleted. One statement for all types that
    a context describes, none for types without texts. Raises MysqlDown."""
    described: dict[TypedId, Description] = {}
    by_function: dict[tuple[str, str], list[TypedId]] = defaultdict(list)
    for target in dict.fromkeys(targets):
        if (declared := TYPES.get(target[0])) is None:
            continue  # of a wing that this deployment left out
        if name := declared.selects.describe:
            by_function[declared.wing, name].append(target)
        else:
            described[target] = Description(str(target[1]))
    for (wing, name), of_function in by_function.items():
        described |= load(wing, name)(of_function)
    return described
