"""The wing of each function, queue and alarm: what a deployment without that wing leaves out."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from cli.paths import LAYER
from local.stack.queue_registry import load_queues
from plaza.infra.contexts import WINGS
from plaza.infra.queues.dead_letters import dlq_of
from plaza.infra.queues.queue import Queue
from tools.template.code import imports_of, queue_named, tree_of
from tools.template.functions import DECLARED, FUNCTIONS, Function, list_functions
from tools.template.queues import name_queue
from tools.template.text import load

BASE = WINGS[0]
SHARED = frozenset({"core", "people"})
"""Wings whose contexts any function may use."""
KINDS = ("api", "queue", "schedule", "ops")
_CALLER = "plaza.people.auth.caller_identity"  # each API function has callers


@cache
def read_functions() -> tuple[Function, ...]:
    """Return all functions, also the ones that only a deploy invokes."""
    declared = load(DECLARED.read_text())
    return tuple(function for kind in KINDS for function in list_functions(kind, declared))


def wing_of(function: Function) -> str:
    """Return the wing of a function: ``Wing`` of functions.yaml, else the highest wing whose
    contexts its module imports, ``core`` for none. Raises ValueError for an unknown wing."""
    wing = function.declared.get("Wing") or max(wings_used(function), key=WINGS.index, default=BASE)
    if wing not in WINGS:
        raise ValueError(f"{function.name} has the wing {wing}, which does not exist")
    return str(wing)


def wings_used(function: Function) -> set[str]:
    """Return the wings whose contexts the module of a function imports, also late. Manifests give
    it the contexts of the deployment's wings, so it depends on none of them."""
    app = FUNCTIONS / function.kind / function.folder / "app.py"
    names = (f"{imported.module}.{imported.name}." for imported in imports_of(app))
    return {
        wing
        for name in names
        for wing in WINGS
        if name.startswith(f"plaza.{wing}.") and not name.startswith(f"{_CALLER}.")
    }


@cache
def wings_of_queues() -> Mapping[str, str]:
    """Return logical id -> wing of each queue and its DLQ. The module that declares a queue is in
    its wing."""
    wings = {}
    for file in sorted((LAYER / "plaza").rglob("*.py")):
        wing = file.relative_to(LAYER / "plaza").parts[0]
        for queue in _queues_declared(file):
            wings[queue.name] = wing if wing in WINGS else BASE
    if wings.keys() != load_queues().keys():
        raise ValueError(f"queues without a module: {load_queues().keys() ^ wings.keys()}")
    of_dlqs = {dlq_of(name): wing for name, wing in wings.items()}
    return {name_queue(name): wing for name, wing in (of_dlqs | wings).items()}


def wings_of_alarms(alarms: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return alarm -> the wings of the functions and queues that its resource refers to; ``core``
    if it refers to none."""
    wings = {function.name: wing_of(function) for function in read_functions()}
    wings |= wings_of_queues()
    return {
        name: {wings[used] for used in _find_names(resource) if used in wings} or {BASE}
        for name, resource in alarms.items()
    }


def _queues_declared(file: Path) -> Iterator[Queue[Any]]:
    """Yield the queues of ``NAME = Queue(...)``."""
    for node in tree_of(file).body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="Queue")))
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(func=ast.Name(id="Queue")))
            ):
                if queue := queue_named(file, name):
                    yield queue


def _find_names(value: Any) -> Iterator[str]:
    """Yield the names of resources that a value refers to."""
    match value:
        case {"Ref": str(name)} | {"Fn::GetAtt": [str(name), *_]}:
            yield name.partition(".")[0]
        case dict():
            for part in value.values():
                yield from _find_names(part)
        case list():
            for part in value:
                yield from _find_names(part)
