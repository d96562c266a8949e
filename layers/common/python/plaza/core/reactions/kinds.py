"""Kinds of reactions: the one place that names one. No I/O.

Routes, views, totals, notifications, export, erasure, audit and reconciliation iterate over
``KINDS``. A deployment adds kinds by the parameter ``Kinds``, without code: they count for their
targets, and neither for users nor in notifications.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plaza.core.targets.types import EXTERNAL, OWN
from plaza.infra.http.requests import PathText
from plaza.infra.runtime.settings import BadSettings, parse_objects


class KindName(PathText):
    """A kind of reaction in a path."""

    PATTERN = "^[a-z][a-z0-9_]{0,14}$"
    DESCRIPTION = "Kind of reaction: `like`, `collect`, `follow`, or one of the deployment's."
    EXAMPLE = "like"
    NOUN = "a kind of reaction"


CONTENT_TYPES = frozenset({"post", "comment", "review"} & OWN.keys())
"""Texts; none in a deployment without the wing that stores them."""
_TARGETS = CONTENT_TYPES | EXTERNAL.keys()
MAX_ADDED = 8
MAX_ADDED_CHARS = 500
SETTING = "PLAZA_KINDS"
_FIELDS = frozenset({"targets", "actors", "closed"})
# Kinds of counters, notifications and push, words of paths, and parts of key names.
_TAKEN = """
    answer collects comment comments content counters followers following follows holds inbox likers
    likes me offer ops order orders post posts query reactions report review reviews shop shops
    switches totals user users viewers voucher
"""
RESERVED = frozenset(_TAKEN.split())


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of reaction.

    ``targets``: types of its targets. ``is_public``: whether others may list the actors.
    ``received``, ``given``: columns of user_counter, of the owner of the target and of the actor;
    None: not counted. ``notifies``: whether the owner is notified. ``ranked``: types whose targets
    rankings order by their totals. ``hold``: how many an actor may have. A closed kind takes no new
    reactions.
    """

    name: str
    targets: frozenset[str]
    is_public: bool = False
    received: str | None = None
    given: str | None = None
    notifies: bool = False
    ranked: frozenset[str] = frozenset()
    hold: int | None = None
    is_closed: bool = False

    @property
    def field(self) -> str:
        """Return the field of the API that has the total of a built-in kind: likes, followers."""
        return (self.received or self.name).removesuffix("_total").removesuffix("_received")


LIKE = Kind(
    "like",
    _TARGETS,
    is_public=True,
    received="likes_received_total",
    notifies=True,
    ranked=frozenset({"post"}),
)
COLLECT = Kind("collect", _TARGETS, received="collects_received_total")
FOLLOW = Kind(
    "follow",
    frozenset({"user"}),
    is_public=True,
    received="followers_total",
    given="following_total",
    notifies=True,
    hold=5_000,
)
BUILT_IN = (LIKE, COLLECT, FOLLOW)


def declare(kinds: Iterable[Kind]) -> dict[str, Kind]:
    """Return name -> kind. Raises BadSettings for a name that is declared twice."""
    declared: dict[str, Kind] = {}
    for kind in kinds:
        if kind.name in declared:
            raise BadSettings(f"the kind {kind.name} is declared twice")
        declared[kind.name] = kind
    return declared


def parse_kinds(text: str, types: Iterable[str] = _TARGETS) -> list[Kind]:
    """Return the kinds of the parameter ``Kinds``, JSON: ``{"bookmark": {"targets": ["post"],
    "actors": "hidden", "closed": false}}``. Raises BadSettings with the field's name."""
    declared = parse_objects("Kinds", text, _FIELDS, max_chars=MAX_ADDED_CHARS, max_names=MAX_ADDED)
    return [_parse_kind(name, fields, frozenset(types)) for name, fields in declared.items()]


def _parse_kind(name: str, fields: Mapping[str, Any], types: frozenset[str]) -> Kind:
    at = f"Kinds.{name}"
    if name in RESERVED or name in {kind.name for kind in BUILT_IN}:
        raise BadSettings(f"{at}: the name is taken")
    targets = fields.get("targets")
    if not isinstance(targets, list) or not targets or not types.issuperset(map(str, targets)):
        raise BadSettings(f"{at}.targets is not a list of {', '.join(sorted(types))}")
    if len({*targets}) < len(targets):
        raise BadSettings(f"{at}.targets has a type twice")
    actors, is_closed = fields.get("actors", "hidden"), fields.get("closed", False)
    if actors not in ("public", "hidden"):
        raise BadSettings(f"{at}.actors is neither public nor hidden")
    if not isinstance(is_closed, bool):
        raise BadSettings(f"{at}.closed is neither true nor false")
    return Kind(name, frozenset(targets), is_public=actors == "public", is_closed=is_closed)


def kinds_of(target_type: str) -> Sequence[Kind]:
    """Return the kinds that targets of a type take, in the order of their declaration."""
    return _OF_TYPE.get(target_type, ())


# Read when the module is loaded: each route and key pattern iterates over it.
KINDS: Mapping[str, Kind] = declare((*BUILT_IN, *parse_kinds(os.environ.get(SETTING, ""))))
_OF_TYPE = {
    target_type: tuple(kind for kind in KINDS.values() if target_type in kind.targets)
    for target_type in sorted({of for kind in KINDS.values() for of in kind.targets})
}
