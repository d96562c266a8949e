"""Exports of accounts, and the list of their erasures."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.http.requests import Id, read_id
from plaza.infra.http.resolver import PlazaResolver, require_caller
from plaza.infra.http.routes import (
    ADMIN,
    BEARER,
    OPERATOR,
    Compressed,
    FreshSignIn,
    Responses,
)
from plaza.infra.http.schemas import Cursor, Limit, Page
from plaza.infra.runtime.errors import NotFound
from plaza.infra.runtime.observability import logger, metrics
from plaza.operate.accounts import export
from plaza.operate.accounts.schemas import ExportedRowResponse
from plaza.people.auth.caller_identity import identify
from plaza.people.auth.request_erasure import read_latest, require_known
from plaza.people.users.schemas import ErasureResponse

app = PlazaResolver(identify, tag="users")


@app.get(
    "/users/me/export",
    security=BEARER,
    middlewares=[Compressed(False)],
    responses=Responses("Rows about the caller."),
)
def get_my_export(limit: Limit = 100, cursor: Cursor = None) -> Page[ExportedRowResponse]:
    """Get what is stored about the caller.

    Returns the rows of all tables that name the caller, section by section.
    """
    rows, following = export.read_page(require_caller(app), cursor, limit, app.charge)
    return Page(items=[ExportedRowResponse.of(row) for row in rows], next=following)


@app.get("/ops/erasures", security=OPERATOR, responses=Responses("The latest erasures.", example=1))
def list_erasures(limit: Limit = 100) -> Page[ErasureResponse]:
    """List erasures of accounts.

    Returns the latest ones; those that are not closed come first. For operators.
    """
    return Page(items=[ErasureResponse.of(erasure) for erasure in read_latest(limit)], next=None)


@app.get(
    "/users/<user_id>/export",
    security=ADMIN,
    middlewares=[Compressed(False), FreshSignIn()],
    responses=Responses("Rows about the user.", NotFound),
)
def get_user_export(
    user_id: Id, limit: Limit = 100, cursor: Cursor = None
) -> Page[ExportedRowResponse]:
    """Get what is stored about a user.

    For a user who asked for it and cannot sign in. Needs a sign-in within five minutes; a session
    signs in again for the next pages. For admins.
    """
    admin_id, exported_id = require_caller(app), read_id(user_id, "user")
    rows, following = export.read_page_of(exported_id, admin_id, cursor, limit, app.charge)
    if not rows:
        require_known(exported_id)
    return Page(items=[ExportedRowResponse.of(row) for row in rows], next=following)


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about accounts."""
    return app.resolve(event, context)
