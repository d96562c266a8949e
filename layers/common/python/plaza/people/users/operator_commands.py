"""What operators do with users: roles and phones."""

from __future__ import annotations

from plaza.infra.jobs.operator_commands import OPERATOR, Id, Result, command
from plaza.people.users import roles, sign_up
from plaza.people.users.roles import Role


@command
def set_role(*, user_id: Id, role: Role) -> Result:
    """Set the role of a user, such as the first admin's. Sessions of a passkey have it within a
    minute, others never."""
    return {"user_id": user_id, "role": role, "before": roles.set_role(user_id, role)}


@command
def release_phone(*, user_id: Id) -> Result:
    """Take the phone of a user away, such as a number that has a new owner, whose next sign-in
    creates another user. Sessions stay."""
    return {"user_id": user_id, "released": sign_up.release_phone(user_id, operator_id=OPERATOR)}
