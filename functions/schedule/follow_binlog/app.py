"""Project changes that bypassed the API, read from the binlog of MySQL, to Redis."""

from plaza.commerce.changes.follow_binlog import run_follower
from plaza.infra.jobs.scheduled_jobs import scheduled


@scheduled("follow_binlog")
def handler(event: object, context: object) -> dict[str, float]:
    """Continue at the offset of the last run."""
    followed = run_follower()
    if followed is None:
        return {}
    return {"rows": followed.rows, "lost": int(followed.lost), "lag_s": followed.lag_s}
