"""Identities of users at issuers: the one rule for ID tokens, the header Plaza-User, imports and
lookups. No I/O.

MySQL ignores spaces at the end of a text, so no issuer and no subject ends with one. Two identities
are the same user's only if all of their bytes are equal.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_ISSUER = re.compile(r"[!-{}~]{1,200}")  # without | and spaces
_SUBJECT = re.compile(r"[!-~]([ -~]{0,253}[!-~])?")


class Identity(NamedTuple):
    """A subject at an issuer."""

    issuer: str
    subject: str


def check_identity(issuer: object, subject: object) -> Identity:
    """Return the identity of an issuer and a subject. Raises ValueError."""
    if not isinstance(issuer, str) or not _ISSUER.fullmatch(issuer):
        raise ValueError("the issuer must be 1 to 200 characters of ASCII without spaces and |")
    if not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
        raise ValueError(
            "the subject must be 1 to 255 characters of ASCII without a space at either end"
        )
    return Identity(issuer, subject)


def parse_identity(text: str) -> Identity:
    """Return the identity in ``<issuer>|<subject>``. Raises ValueError."""
    issuer, _, subject = text.partition("|")
    return check_identity(issuer, subject)
