"""The queue of reserved orders and its dead-letter queue."""

from __future__ import annotations

from plaza.commerce.flash_sales.model import OrderEvent
from plaza.infra.queues.messages import MessageCodec, message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.queues.retries import RetryPolicy
from plaza.infra.runtime.codec import ID, VERSION, Struct


class _OrderBody(Struct, frozen=True, gc=False):
    order_id: ID
    voucher_id: ID
    buyer_id: ID
    generation: VERSION


def _codec(queue: str) -> MessageCodec[OrderEvent]:
    return message_codec(
        queue,
        _OrderBody,
        lambda body: OrderEvent(body.order_id, body.voucher_id, body.buyer_id, body.generation),
        lambda event: _OrderBody(*event.identity, event.generation),
    )


ORDERS = Queue(
    _codec("orders"),
    batch_size=1_000,
    window_s=1,
    visibility_s=61,  # the batch of a killed consumer; orders of one voucher are serialized anyway
    # The first delays are short because a buyer waits for each order.
    retry=RetryPolicy(back_off_s=(1, 2, 3, 3, 3, 3, 3, 3, 5, 10, 30, 120, 600)),
)

ORDERS_DLQ = Queue(_codec("orders_dlq"), batch_size=100, window_s=1, max_concurrency=2)
"""The dead letters of ORDERS. They are decided too, so it has a consumer and its own DLQ."""
