"""Profiles: one's own, and those of others."""

from __future__ import annotations

from typing import Any

from plaza.auth import session_end
from plaza.infra.http import (
    BEARER,
    Id,
    create_api,
    describe_problems,
    describe_response,
    find_caller,
    read_id,
    require_caller,
    require_caller_with_role,
    serve,
)
from plaza.users import profiles
from plaza.users.schemas import EndedSessions, OwnProfile, ProfileChange, UserProfile

app = create_api()

_OWN: dict[str, Any] = {"security": [BEARER], "tags": ["users"]}
_GET_OWN = _OWN | {
    "responses": describe_response(200, OwnProfile, "my profile") | describe_problems(401, 404)
}
_CHANGE_OWN = _OWN | {
    "responses": describe_response(200, OwnProfile, "changed") | describe_problems(400, 401, 404)
}
_GET: dict[str, Any] = {
    "tags": ["users"],
    "security": [{}, BEARER],
    "responses": describe_response(200, UserProfile, "the profile") | describe_problems(401, 404),
}
_END_SESSIONS: dict[str, Any] = {
    "tags": ["users"],
    "security": [BEARER],
    "responses": describe_response(200, EndedSessions, "all are ended")
    | describe_problems(401, 403, 404),
}


@app.get("/users/me", **_GET_OWN)
def get_me() -> OwnProfile:
    """My profile."""
    return OwnProfile.of(profiles.read_own_profile(require_caller(app)))


@app.patch("/users/me", **_CHANGE_OWN)
def change_me(change: ProfileChange) -> OwnProfile:
    """Change my nickname, my avatar, my time zone."""
    return OwnProfile.of(profiles.change_profile(require_caller(app), change.changes))


@app.get("/users/<user_id>", **_GET)
def get_user(user_id: Id) -> UserProfile:
    """The profile of a user, and whether I follow them."""
    actor_id = find_caller(app)
    return UserProfile.of(profiles.read_profile(read_id(user_id, "user"), actor_id))


@app.delete("/users/<user_id>/sessions", **_END_SESSIONS)
def end_sessions(user_id: Id) -> EndedSessions:
    """End all sessions of a user. For admins."""
    admin_id = require_caller_with_role(app, "admin")
    return EndedSessions(
        ended=session_end.end_user_sessions(read_id(user_id, "user"), operator_id=admin_id)
    )


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about users."""
    return serve(app, event, context)
