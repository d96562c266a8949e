"""The commands that an operator may run in an environment, by name, with typed arguments.

A command is a function here; its keyword arguments are in the request, converted and checked by
pydantic. A request with an unknown command or argument is refused. Two lines of each run have the
caller and the arguments, none of which is a text that could be a phone number or a token.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, validate_call

from plaza.commerce.changes import offset
from plaza.commerce.checkins import gauges as checkin_gauges
from plaza.commerce.flash_sales import inspection
from plaza.commerce.flash_sales import recover_orders as orders
from plaza.core.reactions import gauges, rankings, reaction_log, sorted_lists
from plaza.core.switches import change_switches
from plaza.infra.http.requests import MAX_ID
from plaza.infra.mysql import driver
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import error_fields, logger, record
from plaza.infra.runtime.settings import settings
from plaza.integrations.webhooks import operate_webhooks as webhooks
from plaza.integrations.webhooks.model import MAX_URL_CHARS
from plaza.operate.accounts import request_erasure as erasures
from plaza.operate.operations import queue_admin
from plaza.operate.operator_commands import mysql_server, redis_flush, sweep_now
from plaza.operate.operator_commands.model import Refused
from plaza.operate.warm_up import start_warm_up
from plaza.people.auth import new_session, operate_passkeys, operate_server_keys, session_end
from plaza.people.auth.server_keys import KEY_ID_PATTERN, MAX_REQUESTS_PER_S
from plaza.people.users import roles, sign_up
from plaza.people.users.roles import Role

OPERATOR = "operate"
_NO_PRIVILEGE = (
    "the login of operators lacks a privilege of MySQL, which the deploy could not grant: see"
    " privilege_refused in the log of CreateUsers"
)
SMOKE_SESSION_S = 900
SMOKE_NICKNAME = "smoke test"
_MAX_SESSIONS_S = 40.0
_MAX_SORT_S = 40.0
_NOT_LOGGED = {"document", "reason", "url"}  # texts, and what may have a password of a receiver


def _check_digits(value: object) -> object:
    """Return ``value`` unless it is a text with more than digits, such as a phone number."""
    if isinstance(value, str) and not re.fullmatch(r"[0-9]{1,19}", value):
        raise ValueError("it is no id")
    return value


Id = Annotated[int, BeforeValidator(_check_digits), Field(gt=0, le=MAX_ID)]
Result = dict[str, Any]
OperatorCommand = Callable[..., Result]


class CommandRequest(BaseModel):
    """The event of the function Operate. ``caller``: who runs it, as the command says."""

    model_config = ConfigDict(extra="forbid")

    command: Annotated[str, Field(pattern=r"^[a-z-]{1,40}$")]
    arguments: dict[str, Any] = {}
    caller: Annotated[str, Field(pattern=r"^[A-Za-z0-9_+=,.@:/-]{1,250}$")]


def run(event: Mapping[str, Any]) -> Result:
    """Run the command of an event; return its result. Raises Refused for what is no command or has
    other arguments, and what the command raises."""
    try:
        request = CommandRequest.model_validate(event)
        logger.append_keys(caller=request.caller)
        known = list_commands()
        if request.command not in known:
            raise Refused(f"there is no such command; there are {', '.join(known)}")
        return known[request.command](**request.arguments)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        texts = [f"{'.'.join(map(str, entry['loc']))}: {entry['msg']}" for entry in problems]
        raise Refused("; ".join(texts)) from None
    finally:
        logger.remove_keys(["caller"])


def command(function: OperatorCommand) -> OperatorCommand:
    """Make a command of a function: its arguments are checked, and its runs are recorded."""
    name = name_command(function)

    @validate_call
    @wraps(function)
    def run_recorded(**arguments: Any) -> Result:
        known = {name: value for name, value in arguments.items() if name not in _NOT_LOGGED}
        record("command_began", command=name, arguments=known)
        try:
            result = function(**arguments)
        except Exception as error:
            record("command_failed", command=name, **error_fields(error))
            if driver.means(error, driver.Meaning.NO_PRIVILEGE):
                raise Refused(_NO_PRIVILEGE) from error
            raise
        record("command_ended", command=name)
        return result

    return run_recorded


def name_command(function: OperatorCommand) -> str:
    """Return the name of a command: ``set-role`` for ``set_role``."""
    return function.__name__.replace("_", "-")


# ---------------------------------------------------------------------- users and sessions


@command
def set_role(*, user_id: Id, role: Role) -> Result:
    """Set the role of a user, such as the first admin's. Sessions of a passkey have it within a
    minute, others never."""
    return {"user_id": user_id, "role": role, "before": roles.set_role(user_id, role)}


@command
def make_passkey_code(*, user_id: Id) -> Result:
    """Make a code with which a user with a role enrolls a passkey within an hour, once, in the
    console; it is shown this once."""
    if roles.read_role(user_id) == "user":
        raise Refused("the user has the role user, which needs no passkey; see set-role")
    code, expires_in_s = operate_passkeys.make_passkey_code(user_id, operator_id=OPERATOR)
    return {"user_id": user_id, "code": code, "expires_in_s": expires_in_s}


@command
def end_passkeys(*, user_id: Id) -> Result:
    """End all passkeys and all sessions of a user, such as one whose device was lost."""
    return {"user_id": user_id, "ended": operate_passkeys.end_passkeys(user_id, OPERATOR)}


@command
def release_phone(*, user_id: Id) -> Result:
    """Take the phone of a user away, such as a number that has a new owner, whose next sign-in
    creates another user. Sessions stay."""
    return {"user_id": user_id, "released": sign_up.release_phone(user_id, operator_id=OPERATOR)}


@command
def open_smoke_session() -> Result:
    """Create an admin without a phone for `make smoke`, which deletes the account; return a token
    that ends after 15 minutes."""
    user_id = roles.create_admin(SMOKE_NICKNAME)
    return {"user_id": user_id, "token": new_session.open_session(user_id, SMOKE_SESSION_S)}


@command
def end_sessions() -> Result:
    """End the sessions of all users. Repeat it until it has finished."""
    ended, finished = session_end.end_every_session(_MAX_SESSIONS_S)
    return {"ended": ended, "finished": finished}


@command
def erase_now(*, user_id: Id) -> Result:
    """Erase a user, or run the next pass of an erasure at once."""
    return {"user_id": user_id, "state": erasures.erase_now(user_id).state}


# ---------------------------------------------------------------------- webhooks

_Url = Annotated[str, Field(pattern=r"^https?://[!-~]+$", max_length=MAX_URL_CHARS)]
_Types = Annotated[str, Field(pattern=r"^[a-z.,]*$", max_length=500)]
_Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z$")]


def _split(types: str) -> list[str]:
    return [word for word in types.split(",") if word]


@command
def make_webhook(*, url: _Url, types: _Types = "") -> Result:
    """Make a webhook that gets events from now on, of types such as like.added,comment.created or
    of all; its secret is shown this once."""
    webhook_id, secret = webhooks.make_webhook(url, _split(types), operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id), "secret": secret}


@command
def list_webhooks() -> Result:
    """List the webhooks: their states, and why events are not received."""
    return {"webhooks": webhooks.list_webhooks()}


@command
def change_webhook(
    *, webhook_id: Id, url: _Url | None = None, types: _Types | None = None
) -> Result:
    """Change the URL or the types of a webhook; its secret stays."""
    of_types = None if types is None else _split(types)
    webhooks.change_webhook(webhook_id, url, of_types, operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id)}


@command
def end_webhook(*, webhook_id: Id) -> Result:
    """End a webhook for ever."""
    webhooks.end_webhook(webhook_id, operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id)}


@command
def rotate_webhook_secret(*, webhook_id: Id) -> Result:
    """Make another secret of a webhook; the one before signs for a day more."""
    secret = webhooks.rotate_secret(webhook_id, operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id), "secret": secret}


@command
def replay_webhook(*, webhook_id: Id, since: _Time) -> Result:
    """Send all events since a time again, of the last eight days."""
    try:
        at = datetime.fromisoformat(since)
    except ValueError:
        raise Refused("since: it is no time") from None
    begin = webhooks.replay(webhook_id, at, operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id), "since": f"{begin:%Y-%m-%dT%H:%M:%SZ}"}


@command
def enable_webhook(*, webhook_id: Id) -> Result:
    """Enable a webhook that was disabled; it goes on where it stopped."""
    webhooks.enable_webhook(webhook_id, operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id)}


# ---------------------------------------------------------------------- keys of servers


@command
def make_server_key(
    *,
    name: Annotated[str, Field(pattern=r"^[a-z][a-z-]{0,31}$")],
    scopes: Annotated[
        str, Field(pattern=r"^(read|act|moderate|events)(,(read|act|moderate|events))*$")
    ],
    requests_per_s: Annotated[int, Field(ge=1, le=MAX_REQUESTS_PER_S)] = 100,
) -> Result:
    """Make a key of a server, with scopes such as read,act; it is shown this once. A name has two
    valid keys at most."""
    key_id, key = operate_server_keys.make_server_key(
        name, scopes.split(","), requests_per_s, operator_id=OPERATOR
    )
    return {"key_id": key_id, "key": key}


@command
def end_server_key(*, key_id: Annotated[str, Field(pattern=f"^{KEY_ID_PATTERN}$")]) -> Result:
    """End a key of a server. It is refused within a minute."""
    operate_server_keys.end_server_key(key_id, operator_id=OPERATOR)
    return {"key_id": key_id, "ended": True}


@command
def list_server_keys() -> Result:
    """List the keys of servers: scopes, rates, and when each was used last."""
    return {"keys": operate_server_keys.list_server_keys()}


# ---------------------------------------------------------------------- MySQL


@command
def list_transactions() -> Result:
    """List the open transactions of MySQL, the oldest first."""
    return {"transactions": mysql_server.list_transactions()}


@command
def end_transaction(*, thread_id: Id) -> Result:
    """Close the connection of an open transaction, which is rolled back."""
    mysql_server.end_transaction(thread_id)
    return {"thread_id": thread_id, "ended": True}


@command
def explain(*, thread_id: Id) -> Result:
    """Show the plan of the statement that a connection is running."""
    return {"plan": mysql_server.explain(thread_id)}


@command
def counts() -> Result:
    """Show the sizes of all tables, as MySQL estimates them, and the readers of the reaction
    log."""
    return {"tables": mysql_server.read_sizes(), "watermarks": reaction_log.read_watermarks()}


@command
def raise_epoch() -> Result:
    """Raise the epoch by one: later versions are above all earlier ones. It inserts a missing row
    of ``log_barrier``."""
    return {"epoch": reaction_log.raise_epoch()}


@command
def sort_reactions(
    *,
    after: Annotated[str, Field(pattern=r"^[a-z]{1,16}:[0-9]{1,19}:[0-9]{1,19}$")] | None = None,
) -> Result:
    """Fill the sorted lists that large targets lack. Repeat it with ``after`` of the result until
    that is null."""
    begin = None
    if after is not None:
        target_type, after_id, actor_id = after.split(":")
        if target_type not in sorted_lists.TARGET_TYPES:
            raise Refused("after: it is no cursor of this command")
        begin = sorted_lists.SortCursor(target_type, int(after_id), int(actor_id))
    deadline = Deadline.in_s(_MAX_SORT_S)
    count, left = sorted_lists.sort_all(begin, deadline)
    return {"sorted": count, "after": None if left is None else ":".join(map(str, left))}


@command
def show_binlog() -> Result:
    """Show the binlogs that MySQL has, and the offset of FollowBinlog."""
    return {"logs": offset.list_logs(), "offsets": offset.list_offsets()}


@command
def clear_binlog_offset() -> Result:
    """Skip the binlog: it is read from its end on, and all shops are written to Redis again."""
    return {"cleared": offset.forget_offsets()}


# ---------------------------------------------------------------------- Redis


@command
def sweep(*, everything: bool = False) -> Result:
    """Send entries of outboxes again. Everything: also what was sent a moment ago."""
    return {**sweep_now.sweep_now(everything, operator_id=OPERATOR)}


@command
def recover_orders(*, everything: bool = False) -> Result:
    """Send or decide overdue orders. Everything: decide all that are pending."""
    after_s = 0 if everything else None
    return {"recovered": orders.recover_orders(after_s, after_s)}


@command
def flush_redis(*, environment: str, force: bool = False) -> Result:
    """Empty the Redis of the environment whose name is repeated, when no outbox has entries.
    Force: also with entries. Repeat it until it has finished."""
    if environment != settings().environment:
        raise Refused("environment: it is not the name of this environment")
    outboxes = gauges.read_outboxes()["outboxes"]
    outboxes += checkin_gauges.read_checkin_outboxes()["checkin_outboxes"]
    if outboxes and not force:
        raise Refused(
            f"{outboxes:.0f} outboxes have entries that MySQL may lack: run sweep everything=true"
            " until they are stored, or give force=true"
        )
    return redis_flush.flush()._asdict()


@command
def warm_up() -> Result:
    """Start WarmUp, which loads what readers will ask for, and ends the level `warming`."""
    return {"started": start_warm_up.start_warm_up(OPERATOR)}


@command
def show_switches() -> Result:
    """Show the switches in Redis and in MySQL, as documents for set-switches."""
    stored, newest = change_switches.show()
    version, document = newest or (None, None)
    return {"redis": stored, "mysql": document, "version": version}


@command
def set_switches(
    *,
    user_id: Id,
    reason: Annotated[str, Field(min_length=1, max_length=500)],
    document: Annotated[str, Field(max_length=10_000)] | None = None,
    level: Literal["normal", "relieved", "essential", "read_only", "warming"] = "normal",
) -> Result:
    """Set the switches of a document, or of a level without one, after MySQL was restored."""
    try:
        change = change_switches.set_again(document, level, reason, user_id)
    except (ValueError, TypeError):
        raise Refused("document: it is no document of show-switches") from None
    return {"version": change.version}


@command
def show_sale(*, voucher_id: Id) -> Result:
    """Show the state of a sale in Redis, and the sizes of its other keys."""
    return inspection.show_sale(voucher_id)


@command
def close_sale(*, voucher_id: Id) -> Result:
    """Drop the state of a sale that has ended; it is closed with the numbers of MySQL."""
    return {"voucher_id": voucher_id, "existed": inspection.close_sale(voucher_id)}


@command
def drop_rankings() -> Result:
    """Drop all rankings of posts; RefreshRankings builds them again."""
    return {"dropped": rankings.drop_rankings()}


# ---------------------------------------------------------------------- queues


@command
def purge_dead_letter(
    *,
    queue: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")],
    message_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")],
) -> Result:
    """Delete one message of a dead-letter queue for ever."""
    return queue_admin.purge(queue, OPERATOR, [message_id])._asdict()


def list_commands() -> dict[str, OperatorCommand]:
    """Return all commands by name. What they call decides what the role of the function allows."""
    known = (
        set_role,
        make_passkey_code,
        end_passkeys,
        release_phone,
        open_smoke_session,
        end_sessions,
        erase_now,
        make_server_key,
        end_server_key,
        list_server_keys,
        make_webhook,
        list_webhooks,
        change_webhook,
        end_webhook,
        rotate_webhook_secret,
        replay_webhook,
        enable_webhook,
        list_transactions,
        end_transaction,
        explain,
        counts,
        raise_epoch,
        sort_reactions,
        show_binlog,
        clear_binlog_offset,
        sweep,
        recover_orders,
        flush_redis,
        warm_up,
        show_switches,
        set_switches,
        show_sale,
        close_sale,
        drop_rankings,
        purge_dead_letter,
    )
    return {name_command(function): function for function in known}
