"""Who calls: sessions behind opaque tokens. MySQL is the record, Redis stands in front of it.

How people get one is in ``signing_in``: the authorizer, which is asked each time by ``calling``,
does not load it.
"""

from plaza.auth.sessions import Session, read_bearer

__all__ = ["Session", "read_bearer"]
