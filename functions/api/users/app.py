"""Profiles: one's own, and those of others."""

from __future__ import annotations

from typing import Any

from plaza.auth import ending
from plaza.infra.http import (
    BEARER,
    Id,
    answers,
    api,
    caller,
    caller_if_any,
    caller_with_role,
    problems,
    read_id,
    serve,
)
from plaza.users import profiles
from plaza.users.contract import OwnProfile, ProfileChange, SessionsEnded, UserProfile

app = api()

_OWN: dict[str, Any] = {"security": [BEARER], "tags": ["users"]}
_GET_OWN = _OWN | {"responses": answers(200, OwnProfile, "my profile") | problems(401, 404)}
_CHANGE_OWN = _OWN | {"responses": answers(200, OwnProfile, "changed") | problems(400, 401, 404)}
_GET: dict[str, Any] = {
    "tags": ["users"],
    "security": [{}, BEARER],
    "responses": answers(200, UserProfile, "the profile") | problems(401, 404),
}
_END_SESSIONS: dict[str, Any] = {
    "tags": ["users"],
    "security": [BEARER],
    "responses": answers(200, SessionsEnded, "all are ended") | problems(401, 403, 404),
}


@app.get("/users/me", **_GET_OWN)
def get_me() -> OwnProfile:
    """My profile."""
    return OwnProfile.of(profiles.read_own_profile(caller(app)))


@app.patch("/users/me", **_CHANGE_OWN)
def change_me(change: ProfileChange) -> OwnProfile:
    """Change my nickname, my avatar, my time zone."""
    return OwnProfile.of(profiles.change_profile(caller(app), change.changes))


@app.get("/users/<user_id>", **_GET)
def get_user(user_id: Id) -> UserProfile:
    """The profile of a user, and whether I follow them."""
    actor_id = caller_if_any(app)
    return UserProfile.of(profiles.read_profile(read_id(user_id, "user"), actor_id))


@app.delete("/users/<user_id>/sessions", **_END_SESSIONS)
def end_sessions(user_id: Id) -> SessionsEnded:
    """End all sessions of a user. For admins."""
    admin_id = caller_with_role(app, "admin")
    return SessionsEnded(ended=ending.end_sessions_of(read_id(user_id, "user"), by=admin_id))


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about users."""
    return serve(app, event, context)
