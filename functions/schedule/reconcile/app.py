"""Start a reconciliation run every night, or continue one that has not ended."""

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.operate.reconciliation.orchestrator import start


@scheduled("reconcile")
def handler(event: object, context: object) -> dict[str, int]:
    """Start a run, or continue the open one."""
    return {"run": start()}
