"""The user of the canary, a session and a post for it: the text of the canary's secret.

The user has a name in place of a phone, so that no code signs it in. Its post is hidden: it takes
the reactions of its author, and no list, feed or ranking shows it to others.
"""

from __future__ import annotations

import json

from plaza.core.targets import Existence, lookup
from plaza.infra.mysql.secret_rotation import Rotation
from plaza.people.auth import new_session
from plaza.people.users import sign_up
from plaza.social.content import Draft, commands

PHONE = "canary"  # no phone number


def make_credentials(current: str) -> str:
    """Return ``{"token", "post_id"}``: a new session, and the post of the current credentials or a
    new one. Safe to repeat. Raises MysqlDown, RedisDown, SwitchedOff."""
    user = sign_up.sign_up(PHONE)
    post_id = int(json.loads(current or "{}").get("post_id") or 0)
    if not post_id or lookup.find_in_mysql("post", post_id) is not Existence.LIVE:
        post_id = commands.create_hidden(
            Draft(
                type="post",
                author_id=user.id,
                kind="note",
                title="Canary",
                body="Read by a monitor.",
            )
        )
    return json.dumps({"token": new_session.open_session(user.id), "post_id": str(post_id)})


CANARY = Rotation(make_credentials, lambda _: None)
