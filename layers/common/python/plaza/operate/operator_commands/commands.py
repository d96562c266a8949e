"""The commands that an operator may run in an environment: those that the manifests name.

A request with an unknown command or argument is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from plaza.infra.contexts import offers
from plaza.infra.jobs.operator_commands import OperatorCommand, Refused, Result
from plaza.infra.runtime.observability import logger


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
        return known[request.command].run(**request.arguments)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False, include_input=False)
        texts = [f"{'.'.join(map(str, entry['loc']))}: {entry['msg']}" for entry in problems]
        raise Refused("; ".join(texts)) from None
    finally:
        logger.remove_keys(["caller"])


def list_commands() -> dict[str, OperatorCommand]:
    """Return all commands by name. What they call decides what the role of the function allows."""
    return {
        value.name: value
        for _, module in offers("commands")
        for value in vars(module).values()
        if isinstance(value, OperatorCommand)
    }
