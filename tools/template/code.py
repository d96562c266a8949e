"""The Python of the product as syntax: imports, definitions, and the queues that functions use."""

import ast
import importlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from cli.paths import LAYER
from plaza.infra.contexts import list_offers
from plaza.infra.queues.dead_letters import dlq_of
from plaza.infra.queues.queue import Queue

_SEND = {"send", "try_send", "send_all"}
_SEND_BY_NAME = {"send_all", "spill", "send_spilled"}  # get the name of the queue
_MEASURE = {"count_backlog", "count_unfinished"}


class Import(NamedTuple):
    """The parts of ``from module import name as bound``; ``name`` is '' for ``import module``."""

    module: str
    name: str
    bound: str


class QueueUse(NamedTuple):
    """Names of the queues that a function uses: ``consumed`` is '' for none."""

    consumed: str
    sent: frozenset[str]
    measured: frozenset[str]


@cache
def tree_of(file: Path) -> ast.Module:
    """Return the syntax tree of a file; the same object for each call."""
    return ast.parse(file.read_text())


@cache
def nodes_of(file: Path) -> Sequence[ast.AST]:
    """Return all nodes of the syntax tree of a file."""
    return tuple(ast.walk(tree_of(file)))


@cache
def imports_of(file: Path) -> list[Import]:
    """Return all imports of a file, those inside functions included."""
    return list(_imports_of(file))


def _imports_of(file: Path) -> Iterator[Import]:
    for node in nodes_of(file):
        if isinstance(node, ast.Import):
            yield from (Import(a.name, "", a.asname or a.name) for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{file} has a relative import")
            module = node.module or ""
            yield from (Import(module, a.name, a.asname or a.name) for a in node.names)


def module_file(module: str) -> Path:
    """Return the file of ``plaza.x.y``."""
    path = LAYER.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def queue_named(file: Path, name: str) -> Queue[Any] | None:
    """Return the queue that a file imports as ``name`` or declares; None if it is not a queue."""
    modules = [imported.module for imported in imports_of(file) if imported.name == name]
    if LAYER in file.parents:
        modules.append(".".join(file.relative_to(LAYER).with_suffix("").parts))
    for module in modules:
        if module.startswith("plaza"):
            queue = getattr(importlib.import_module(module), name, None)
            if isinstance(queue, Queue):
                return queue
    return None


@cache
def names_used(file: Path, within: ast.AST) -> list[tuple[Path, ast.AST]]:
    """Return (file, definition) of each function or class of Plaza that ``within`` names, and of
    all that manifests name for ``offers("relation")``."""
    tree = tree_of(file)
    imported = {i.bound: i for i in imports_of(file) if i.module.startswith("plaza")}
    definitions = []
    for node in ast.walk(within):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used = imported.get(node.value.id)
            if used and module_file(f"{used.module}.{used.name}").exists():
                definitions += _definition(module_file(f"{used.module}.{used.name}"), node.attr)
        elif isinstance(node, ast.Name) and node.id in imported:
            definitions += _definition(
                module_file(imported[node.id].module), imported[node.id].name
            )
        elif isinstance(node, ast.Name):
            definitions += [(file, d) for d in tree.body if getattr(d, "name", None) == node.id]
        elif relation := _relation_of(node):
            definitions += list_offered(relation)
    return definitions


def _relation_of(node: ast.AST) -> str:
    """Return the relation of a call ``offers("relation")``, '' for other nodes."""
    match node:
        case ast.Call(func=ast.Name(id="offers"), args=[ast.Constant(value=str(relation))]):
            return relation
    return ""


@cache
def list_offered(relation: str) -> list[tuple[Path, ast.AST]]:
    """Return (file, definition) of all that manifests name for a relation; of a module all of it.
    Raises ValueError for a name without a definition."""
    definitions = []
    for wing, _, name in list_offers(relation):
        module, _, attribute = name.partition(":")
        file = module_file(f"plaza.{wing}.{module}")
        own = _definition(file, attribute) or list_constants(file, attribute)
        if attribute and not own:
            raise ValueError(f"{name} is not defined in {file}")
        definitions += own or [(file, tree_of(file))]
    return definitions


def list_constants(file: Path, name: str) -> list[tuple[Path, ast.AST]]:
    """Return (file, statement) of a constant, and of the constants of its module that it names;
    of an object its fields instead, ``ast.keyword``."""
    constants = {
        target.id: node
        for node in tree_of(file).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    statements, todo = list[tuple[Path, ast.AST]](), [name]
    while todo:
        node = constants.pop(todo.pop(), None)
        if node is not None:
            statements += [(file, part) for part in _parts_of(node)]
            todo += [used.id for used in ast.walk(node) if isinstance(used, ast.Name)]
    return statements


def _parts_of(statement: ast.Assign | ast.AnnAssign) -> Sequence[ast.AST]:
    match statement.value:
        case ast.Call(func=made, args=arguments, keywords=fields):
            return [made, *arguments, *fields]
    return [statement]


def definition_of(function: Callable[..., object]) -> list[tuple[Path, ast.AST]]:
    """Return (file, definition) of a function of Plaza."""
    return _definition(module_file(function.__module__), function.__name__)


@cache
def read_queue_use(app: Path) -> QueueUse:
    """Return the queues that a function reaches by its calls. A consumer sends to its own queue,
    in which messages wait, and to its DLQ."""
    own = _consumed_by(app)
    sent, measured = set[str](), set[str]()
    if own is not None:
        sent |= {own.name, dlq_of(own.name)}
    for file, within in _reached_from(app, own):
        nodes = list(ast.walk(within))
        sends_by_name = any(_name_called(node) in _SEND_BY_NAME for node in nodes)
        for node in nodes:
            match node:
                case ast.Attribute(value=ast.Name(id=constant), attr=used) if used in _SEND:
                    sent |= _name_of(file, constant)
                case ast.Attribute(value=ast.Name(id=constant), attr=used) if used in _MEASURE:
                    measured |= _name_of(file, constant)
                case ast.Attribute(value=ast.Name(id=constant), attr="name") if sends_by_name:
                    sent |= _name_of(file, constant)
    return QueueUse(own.name if own else "", frozenset(sent), frozenset(measured))


def _name_called(node: ast.AST) -> str:
    """Return the name of a function or method that ``node`` names, '' for other nodes."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _name_of(file: Path, constant: str) -> set[str]:
    queue = queue_named(file, constant)
    return {queue.name} if queue else set()


def _consumed_by(app: Path) -> Queue[Any] | None:
    """Return the queue of ``processor = QUEUE.processor(consumer)``."""
    for node in nodes_of(app):
        match node:
            case ast.Attribute(value=ast.Name(id=constant), attr="processor"):
                return queue_named(app, constant)
    return None


def _reached_from(app: Path, own: Queue[Any] | None) -> list[tuple[Path, ast.AST]]:
    """Return (file, definition) of everything that a function's code may call, by name. A field of
    an object that a manifest names counts once this code reads an attribute of its name."""
    todo: list[tuple[Path, ast.AST]] = [(app, tree_of(app))]
    if own is not None:
        todo += definition_of(own.handle)
    visited: dict[int, tuple[Path, ast.AST]] = {}
    attributes, unread = set[str | None](), list[tuple[Path, ast.AST]]()
    while todo:
        file, within = todo.pop()
        if id(within) in visited:
            continue
        if isinstance(within, ast.keyword) and within.arg not in attributes:
            unread.append((file, within))
            continue
        visited[id(within)] = file, within
        attributes |= {node.attr for node in ast.walk(within) if isinstance(node, ast.Attribute)}
        todo += [
            used for used in names_used(file, within) if LAYER in used[0].parents or used[0] == app
        ]
        todo += [part for part in unread if getattr(part[1], "arg", None) in attributes]
    return list(visited.values())


def _definition(file: Path, name: str) -> list[tuple[Path, ast.AST]]:
    """Return where ``name`` is defined, through packages that re-export it."""
    for node in tree_of(file).body:
        if getattr(node, "name", None) == name:
            return [(file, node)]
        if isinstance(node, ast.ImportFrom):
            for imported in (a for a in node.names if (a.asname or a.name) == name):
                source = module_file(node.module or "")
                if module_file(f"{node.module}.{imported.name}").exists():
                    return []  # a module, not a definition
                return _definition(source, imported.name) if source.exists() else []
    return []
