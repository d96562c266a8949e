"""Gauges of the binlog: how far its follower is behind."""

from __future__ import annotations

from plaza.infra.jobs import scheduled_jobs

FOLLOWER = "follow_binlog"


def read_binlog_lag() -> dict[str, float]:
    """Return the lag that the last successful run of FollowBinlog ended with, nothing before the
    first one. One round trip. Raises RedisDown."""
    run = scheduled_jobs.read_runs().get(FOLLOWER)
    return {} if run is None or "lag_s" not in run.result else {"binlog_lag_s": run.result["lag_s"]}
