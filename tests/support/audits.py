"""The audit in this process, of the servers of a test."""

from __future__ import annotations

from local.audit.compare import AuditReport, compare
from local.audit.stores import read_mysql_state, read_redis_state
from tests.support.servers import IS_CLUSTER


class Audit:
    """``python -m local audit``, without the queues of a stack."""

    def __init__(self, redis_url: str, mysql_url: str) -> None:
        self.redis_url, self.mysql_url = redis_url, mysql_url

    def __call__(self) -> AuditReport:
        cache = read_redis_state(self.redis_url, cluster=IS_CLUSTER)
        return compare(read_mysql_state(self.mysql_url, cache=cache), cache, {})
