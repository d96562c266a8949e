"""Delete expired sessions; imported by the function delete_expired."""

from plaza.auth.mysql_store import delete_expired

__all__ = ["delete_expired"]
