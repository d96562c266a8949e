"""What differed between Redis, counters and rows, and comparing them now. For admins."""

from __future__ import annotations

from typing import Any

from plaza.infra.errors import BadInput
from plaza.infra.http import (
    BEARER,
    Cursor,
    Limit,
    Page,
    answers,
    api,
    caller_with_role,
    pack_cursor,
    problems,
    serve,
    unpack_cursor,
)
from plaza.reconciliation import running
from plaza.reconciliation.contract import RunAnswer

app = api()

_OWN: dict[str, Any] = {"tags": ["ops"], "security": [BEARER]}
_LIST = _OWN | {
    "responses": answers(200, Page[RunAnswer], "runs, newest first") | problems(400, 401, 403)
}
_START = _OWN | {"responses": answers(202, RunAnswer, "it goes on") | problems(401, 403)}


@app.get("/ops/drift", **_LIST)
def list_runs(limit: Limit = 10, cursor: Cursor = None) -> Page[RunAnswer]:
    """What was compared, what differed and what became of it, the newest run first. For admins."""
    caller_with_role(app, "admin")
    runs = running.read_reports(_before(cursor), limit + 1)
    return Page(
        items=[RunAnswer.of(run) for run in runs[:limit]],
        next=pack_cursor(runs[limit - 1].run_id) if len(runs) > limit else None,
    )


@app.post("/ops/reconciliations", **_START)
def start_run() -> tuple[RunAnswer, int]:
    """Compare everything now; a run that has not ended goes on. For admins."""
    caller_with_role(app, "admin")
    return RunAnswer.of(running.read_report(running.start())), 202


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about reconciliation."""
    return serve(app, event, context)


def _before(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    [run_id] = unpack_cursor(cursor, (int,))
    if run_id <= 0:
        raise BadInput("cursor", "is not one that we gave")
    return int(run_id)
