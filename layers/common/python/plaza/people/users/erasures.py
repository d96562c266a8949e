"""Erasures of accounts: the record, and the list of work. ``operate.accounts`` runs the passes."""

from plaza.people.users.model import RETURN_S, SETTLE_S, Erasure
from plaza.people.users.mysql_erasures import (
    end_pass,
    exists,
    find_due,
    find_erased,
    insert,
    measure,
    read_latest,
    reopen_returned,
)

__all__ = [
    "RETURN_S",
    "SETTLE_S",
    "Erasure",
    "end_pass",
    "exists",
    "find_due",
    "find_erased",
    "insert",
    "measure",
    "read_latest",
    "reopen_returned",
]
