"""Sessions that have expired."""

from plaza.auth.mysql_sessions import delete_expired

__all__ = ["delete_expired"]
