"""The order token of a total: text that orders two totals of one target and kind.

It has three numbers, read together with the total by one run of one script and compared in this
order: the version of the counter up to which Redis has applied commits; when MySQL took the
snapshot that the load began with; how often a gate has changed the total of this load. The greater
token has the newer total (docs/live-numbers.md).
"""

from __future__ import annotations

from binascii import b2a_base64

_BITS = 54  # of each number: nine digits, enough for 2**53
_DIGITS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"  # in ASCII order
_FORMAT = _DIGITS.index("1")  # the first digit; a later format has a greater one
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_TO_DIGITS = bytes.maketrans(_BASE64, _DIGITS.encode())


def encode(db_version: int, loaded_us: int, changes: int) -> str:
    """Return the token of a total: 28 characters, compared by their codes."""
    number = ((_FORMAT << _BITS | db_version) << _BITS | loaded_us) << _BITS | changes
    return b2a_base64(number.to_bytes(21), newline=False).translate(_TO_DIGITS).decode()


def parse_order(db_version: str | int, loaded: str, changes: str) -> str:
    """Return the token of what a script replies with a total: see read.lua."""
    return encode(int(db_version), int(loaded), int(changes))
