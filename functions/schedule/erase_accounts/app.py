"""Erase the accounts whose users asked for it, every minute."""

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.operate.accounts.erase import run_passes


@scheduled("erase_accounts")
def handler(event: object, context: object) -> dict[str, int]:
    """Run the passes that are due, for less than a minute."""
    return {"passes": run_passes()}
