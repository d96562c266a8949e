"""The queue of the steps of WarmUp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from plaza.core.reactions import KINDS, Kind, Target
from plaza.core.reactions.model import require_kind
from plaza.infra.contexts import list_offers
from plaza.infra.queues.messages import InvalidMessage, message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.queues.retries import RetryPolicy
from plaza.infra.runtime.codec import ID, VERSION, Meta, Struct

MAX_TARGETS = 4_000  # fit into a message
TARGETS = "targets"


@dataclass(frozen=True, slots=True)
class WarmUpStep:
    """A step of the run ``run_us``, named by its start. ``stage``: '' for the first one;
    ``targets``: those that are left, none before the hottest ones are read."""

    run_us: int
    stage: str = ""
    targets: Sequence[tuple[Kind, Target]] = ()


class _WarmUpBody(Struct, frozen=True, omit_defaults=True):
    run: VERSION
    stage: str = ""
    targets: Annotated[Sequence[tuple[str, str, ID]], Meta(max_length=MAX_TARGETS)] = ()


def list_stages() -> list[str]:
    """Return the stages of a run: contexts that have one, from the top wing down, then targets."""
    return [*reversed([context for _, context, _ in list_offers("warm")]), TARGETS]


def _pack(step: WarmUpStep) -> _WarmUpBody:
    return _WarmUpBody(
        step.run_us, step.stage, tuple((kind.name, *target) for kind, target in step.targets)
    )


def _unpack(body: _WarmUpBody) -> WarmUpStep:
    if body.stage and body.stage not in list_stages():
        raise InvalidMessage(f"no context has the stage {body.stage}")
    for kind, target_type, _ in body.targets:
        require_kind(kind, target_type)
    targets = tuple((KINDS[kind], Target(of, target_id)) for kind, of, target_id in body.targets)
    return WarmUpStep(body.run, body.stage, targets)


WARM_UPS: Queue[WarmUpStep] = Queue(
    message_codec("warm_ups", _WarmUpBody, _unpack, _pack),
    batch_size=1,
    max_concurrency=2,
    retention_days=4,
    retry=RetryPolicy(max_wait_s=4 * 3_600),  # after that, readers have loaded it
)
