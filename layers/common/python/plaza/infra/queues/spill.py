"""Messages that SQS refused, stored in the table ``spilled_message`` until SQS accepts them.

A 200 guarantees two copies of an event. If SQS refuses a message, the second copy is a row here,
which the sweeper sends and deletes. A message that is sent twice is handled once by its consumer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plaza.infra.mysql import mysql
from plaza.infra.queues.sqs import Outgoing, for_request
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import current_request_id

_BATCH = 500
_MAX_COUNTED = 100_000
_MAX_S = 10


def spill(queue: str, body: str) -> None:
    """Store one message of the current request for ``queue``. One statement. Raises MysqlDown."""
    mysql.write(
        "INSERT INTO spilled_message (queue, body, request_id) VALUES (%s, %s, %s)",
        (queue, body, current_request_id()),
    )


def read_gauges() -> dict[str, float]:
    """Return how many messages are stored, counted up to 100,000. One statement. Raises
    MysqlDown."""
    [(stored,)] = mysql.fetch_all(
        "SELECT COUNT(*) FROM (SELECT 1 FROM spilled_message LIMIT %s) AS stored", (_MAX_COUNTED,)
    )
    return {"spilled_messages": stored}


def send_spilled(
    queue: str, send_all: Callable[[Sequence[Outgoing]], int], max_s: float = _MAX_S
) -> int:
    """Send the stored messages of ``queue``, oldest first, and delete them; return how many.

    ``send_all`` sends messages and returns how many SQS accepted; a page of 500 that is not
    accepted as a whole stays. Two statements a page. Stops after ``max_s``. Raises MysqlDown,
    QueueDown.
    """
    sent, deadline = 0, Deadline.in_s(max_s)
    while not deadline.has_passed:
        rows = mysql.fetch_all(
            """
            SELECT id, body, request_id
            FROM spilled_message FORCE INDEX (by_queue)
            WHERE queue = %s
            ORDER BY id LIMIT %s
            """,
            (queue, _BATCH),
        )
        messages = [for_request(body, request_id) for _, body, request_id in rows]
        if not messages or send_all(messages) < len(messages):
            break
        mysql.write(
            "DELETE FROM spilled_message WHERE id IN %s", ([row_id for row_id, _, _ in rows],)
        )
        sent += len(rows)
        if len(rows) < _BATCH:
            break
    return sent
