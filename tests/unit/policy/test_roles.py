"""The matrix of routes by roles: what each role may do beyond a user."""

from __future__ import annotations

import argparse
import re

import pytest

from tools.roles import ROLES, main, read_matrix

MATRIX = list(read_matrix())
_PASSKEYS = r"/passkeys.*"
BEYOND_A_USER = {
    "anonymous": "none",
    "staff": r"/shops/\{shop_id\}/(members/\{user_id\}|redemptions|sales)"
    r"|/vouchers/\{voucher_id\}/redemptions",
    "owner": r"/shops/\{shop_id\}(/(members.*|redemptions|sales))?|/vouchers.*",
    "moderator": rf"{_PASSKEYS}|/ops/reports.*|/ops/reviews/\{{review_id\}}/score"
    r"|/ops/(posts|comments|reviews)/\{\w+\}/hidden",
    "sales": rf"{_PASSKEYS}|/shop-types.*|/shops.*|/vouchers.*|/ops/(vouchers|reach)",
    "operator": rf"{_PASSKEYS}|/ops/(audit|breakers|erasures|health|keys|lag|queues.*|reach"
    r"|reconciliations|series|server-keys.*|sweeps|switches.*|vouchers)|/users/\{user_id\}/sessions",
}
"""Role -> paths, by the work that it is for. Only an admin may do everything."""


@pytest.mark.parametrize("role", BEYOND_A_USER)
def test_a_role_may_do_what_its_work_needs_and_no_more(role: str) -> None:
    beyond = [route for route, roles in MATRIX if role in roles and "user" not in roles]
    paths = {route.partition(" ")[2] for route in beyond}
    assert {path for path in paths if not re.fullmatch(BEYOND_A_USER[role], path)} == set()
    assert bool(paths) == (role != "anonymous")


def test_only_an_admin_erases_and_exports_others_and_reads_all_events() -> None:
    of_admins = {route for route, roles in MATRIX if roles == {"admin"}}
    assert of_admins == {
        "DELETE /users/{user_id}",
        "GET /users/{user_id}/export",
        "GET /ops/events",
    }


def test_an_admin_may_do_everything_and_a_role_all_that_a_user_may() -> None:
    assert all("admin" in roles for _, roles in MATRIX if roles != {"server"})
    assert all(set(ROLES) - {"anonymous"} <= roles for _, roles in MATRIX if "user" in roles)


def test_the_matrix_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(argparse.Namespace())
    printed = capsys.readouterr().out.splitlines()
    rows = {cells[1].strip(): cells[2:-1] for line in printed if len(cells := line.split("│")) > 2}
    for route, roles in MATRIX:
        marked = [role for role, cell in zip(ROLES, rows[route], strict=True) if cell.strip()]
        assert set(marked) == roles
