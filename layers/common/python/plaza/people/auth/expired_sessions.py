"""Delete expired sessions and codes of passkeys."""

from plaza.infra.jobs.expiry import Expiry
from plaza.people.auth import mysql_passkeys, mysql_store


def delete_expired(limit: int) -> int:
    """Delete at most ``limit`` sessions that ended ``KEPT_S`` ago, and codes of passkeys that are
    over; return how many. Up to two statements. Raises MysqlDown."""
    deleted = mysql_store.delete_expired(limit)
    if deleted == limit:
        return deleted
    return deleted + mysql_passkeys.delete_expired_codes(limit - deleted)


EXPIRY = Expiry("session", delete_expired)
