"""The phases of a deploy and of a rollback, with traffic in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tests.versions.agreement import check_agreement, check_reports
from tests.versions.deployment import BEFORE, NEW, OLD, Deployment, Phase
from tests.versions.traffic import STEPS, Traffic
from tests.versions.values import Values, describe, monitoring

PHASES = (
    Phase("old only", (OLD,), (OLD,)),
    Phase("consumers change", (OLD,), (OLD, NEW)),
    Phase("canary", (OLD, NEW), (NEW,)),
    Phase("more traffic moved", (NEW, OLD), (NEW,)),
    Phase("consumers change back", (NEW, OLD), (OLD, NEW)),
    Phase("consumers rolled back", (NEW, OLD), (OLD,)),
    Phase("new only", (NEW,), (NEW,)),
    Phase("rolled back", (OLD,), (OLD,)),
    Phase("new again", (NEW,), (NEW,)),
)
# Queues of repairs and of dead letters, which no traffic of a healthy system fills.
_QUIET = {"acknowledgements", "repairs", "orders_dlq", "rebuilds"}
_REPORTED = PHASES[-2:]
_DELIVER_EVERY = 4
MAX_ROUNDS = 3
# Not run in each phase: partitions take seconds, gauges ask CloudWatch, and a step starts
# reconciliations.
_SKIPPED = {"schedule/maintain_log", "schedule/sample_gauges", "schedule/reconcile"}

Step = Callable[[Traffic, str, str], None]


def roll_out(
    traffic: Traffic,
    phases: Sequence[Phase] = PHASES,
    steps: Sequence[Step] = STEPS,
    *,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Play all steps in each phase, in random order, until it ``is_over``. Problems are from
    the deployment."""
    if traffic.deployment.phase == BEFORE:
        traffic.deployment.phase = phases[0]
        traffic.prepare()
    for phase in phases:
        for _ in play_phase(traffic, phase, steps):
            if is_over():
                return


def play_phase(traffic: Traffic, phase: Phase, steps: Sequence[Step]) -> Iterator[None]:
    """Play the steps, while messages are delivered now and then; then let the system get quiet,
    and compare everything. Messages of the phase before that are left are delivered in this one.
    Yields after each step and each check."""
    deployment = traffic.deployment
    deployment.phase = phase
    for number, step in enumerate(deployment.dice.sample(steps, len(steps))):
        try:
            step(traffic, phase.api[0], phase.api[-1])
        except Exception as error:
            if not deployment.problems:
                raise
            deployment.note(f"{step.__name__} can't continue: {error!r}")
        if number % _DELIVER_EVERY == 0:
            deliver_some(deployment)
        yield
    for folder in deployment.versions[phase.workers[-1]].schedules:
        if folder not in _SKIPPED:
            deployment.run_schedule(folder)
    deployment.compare_stores()
    if OLD not in {*phase.api, *phase.workers}:
        deployment.compare_shops()
    yield
    check_agreement(traffic)
    if phase in _REPORTED:
        check_reports(traffic)
    traffic.record.fell.clear()
    traffic.record.seen.clear()
    leave_messages(traffic, steps)
    yield


def deliver_some(deployment: Deployment) -> None:
    """Deliver one batch of each queue."""
    for consumer in deployment.consumers():
        deployment.deliver(consumer)


def leave_messages(traffic: Traffic, steps: Sequence[Step]) -> None:
    """Send messages that the consumers of the next phase get."""
    for step in (Traffic.react, Traffic.check_in, Traffic.order, Traffic.write_post):
        if step in steps:
            step(traffic, traffic.deployment.phase.api[0], traffic.deployment.phase.api[-1])


def find_one_sided_queues(deployment: Deployment) -> list[str]:
    """Return the queues of both versions of which one consumed no message of the other."""
    queues = []
    common = set.intersection(*(set(v.consumers) for v in deployment.versions.values()))
    for queue in sorted(common - _QUIET):
        queues += [
            f"{queue}: no message of the {sender} version reached the {consumer} one"
            for sender, consumer in ((OLD, NEW), (NEW, OLD))
            if not deployment.consumed[queue, sender, consumer]
        ]
    return queues


def roll_out_until_shared(traffic: Traffic, redis_url: str, values: Values) -> list[str]:
    """Play deploys and rollbacks until each version has read and consumed what the other one wrote
    and sent, at most ``MAX_ROUNDS``. Returns all problems.

    ``redis_url``: for a user who may MONITOR. Which value is read again is chance, so one round may
    lack some.
    """
    deployment, missing = traffic.deployment, [""]
    for _ in range(MAX_ROUNDS):
        with monitoring(redis_url, values):
            deployment.new_process()  # MONITOR shows the names of all connections
            roll_out(traffic)
        missing = [*find_one_sided_queues(deployment), *describe(values.find_missing((OLD, NEW)))]
        if deployment.problems or not missing:
            break
    return [*deployment.problems, *missing]
