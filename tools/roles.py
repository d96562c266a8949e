"""The routes of the API by the roles that may call them.

``python -m tools roles`` prints them from the contract. *User* is a session of any user. *Staff*
and *owner* are members of the shop that the route is about; a member of another shop is a user.
"""

import argparse
import json
from collections.abc import Iterator
from typing import NamedTuple

from rich.table import Table

from cli.output import wide_console
from cli.paths import CONTRACT

ROLES = ("anonymous", "user", "staff", "owner", "admin")
# What a route declares as ``security`` -> the first of ROLES that it admits.
_LOWEST = {"": "user", "member": "staff", "owner": "owner", "admin": "admin"}


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
            lowest = _find_lowest(operation["security"])
            roles = frozenset(ROLES[ROLES.index(lowest) :])
            yield Access(f"{method.upper()} {path}", roles)


def _find_lowest(security: list[dict[str, list[str]]]) -> str:
    if not security or {} in security:
        return "anonymous"
    [scopes] = security[0].values()
    return _LOWEST["".join(scopes)]
