"""The routes of the API by the roles that may call them.

``python -m tools roles`` prints them from the contract. *User* is a session with the role ``user``.
*Staff* and *owner* are members of the shop that the route is about; a member of another shop is a
user. *Server* is a key that a server uses for none of its users. The other roles are given by the
command ``set-role``, and work in the session of a passkey only.
"""

import argparse
import json
from collections.abc import Iterator
from typing import NamedTuple

from rich.table import Table

from cli.output import wide_console
from cli.paths import CONTRACT

ROLES = ("anonymous", "user", "staff", "owner", "moderator", "sales", "operator", "admin", "server")
# What a route declares as ``security`` -> the roles that it admits.
_MEANS = {"member": ("staff", "owner")}


class Access(NamedTuple):
    """A route and the roles that may call it."""

    route: str
    roles: frozenset[str]


def main(_: argparse.Namespace) -> None:
    """Print a row for each route, with a mark for each role."""
    table = Table("route", *ROLES)
    for route, roles in read_matrix():
        table.add_row(route, *("x" if role in roles else "" for role in ROLES))
    wide_console().print(table)


def read_matrix() -> Iterator[Access]:
    """Yield all routes of the contract, by path."""
    for path, methods in sorted(json.loads(CONTRACT.read_text())["paths"].items()):
        for method, operation in sorted(methods.items()):
            roles = find_roles(operation["security"])
            yield Access(f"{method.upper()} {path}", roles)


def find_roles(security: list[dict[str, list[str]]]) -> frozenset[str]:
    """Return the roles that the ``security`` of a route admits."""
    if not security or {} in security:
        return frozenset(ROLES)
    [scopes] = security[0].values()
    if not scopes:
        return frozenset(ROLES) - {"anonymous"}
    return frozenset(role for scope in scopes for role in _MEANS.get(scope, (scope,)))
