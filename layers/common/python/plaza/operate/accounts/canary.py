"""The user of the canary, and a session and a post for it: the text of the canary's secret.

The user has a name in place of a phone, so that no code signs it in. A deployment without posts has
none for it; the canary reads its profile there.
"""

from __future__ import annotations

import json

from plaza.infra.contexts import offers
from plaza.infra.mysql.secret_rotation import Rotation
from plaza.people.auth import new_session
from plaza.people.users import sign_up

PHONE = "canary"  # no phone number


def make_credentials(current: str) -> str:
    """Return ``{"token", "post_id"}``: a new session, and the post of the current credentials or a
    new one, '' without posts. Safe to repeat. Raises MysqlDown, RedisDown, SwitchedOff."""
    user = sign_up.sign_up(PHONE)
    current_id = int(json.loads(current or "{}").get("post_id") or 0)
    post_id = ""
    for _, make_post in offers("canary"):
        post_id = str(make_post(user.id, current_id))
    return json.dumps({"token": new_session.open_session(user.id), "post_id": post_id})


CANARY = Rotation(make_credentials, lambda _: None)
