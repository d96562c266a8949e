"""Who calls: sessions behind opaque tokens. MySQL is the record, Redis stands in front of it.

How people get one is in ``phone_sign_in``: the authorizer, which is asked each time by ``caller_identity``,
does not load it.
"""

from plaza.auth.sessions import Session, parse_bearer

__all__ = ["Session", "parse_bearer"]
