"""The largest requests that the contract allows, as clients encode them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import cycle, islice
from re import _constants, _parser
from typing import Any, NamedTuple
from urllib.parse import quote

Document = Mapping[str, Any]
WIDEST = "\U0001f35c"  # four bytes in UTF-8, twelve when they are escaped
METHODS = ("delete", "get", "patch", "post", "put")


class Largest(NamedTuple):
    """A request with the largest values of an operation. ``has_body``: whether it takes one."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    has_body: bool


def list_largest(contract: Document, text: str = WIDEST) -> Iterator[Largest]:
    """Yield the largest request of each operation. ``text`` is repeated in free texts."""
    for path, operations in contract["paths"].items():
        for method in sorted(set(operations) & set(METHODS)):
            operation = operations[method]
            declared = [resolve(contract, each) for each in operation.get("parameters", [])]
            values = {
                (each["in"], each["name"]): make_longest(resolve(contract, each["schema"]), text)
                for each in declared
            }
            yield Largest(
                method.upper(),
                _fill(
                    path,
                    {name: value for (where, name), value in values.items() if where == "path"},
                ),
                "&".join(
                    f"{name}={quote(value, safe='')}"
                    for (where, name), value in values.items()
                    if where == "query"
                ),
                {n.lower(): value for (where, n), value in values.items() if where == "header"},
                "requestBody" in operation,
            )


def _fill(path: str, values: Mapping[str, str]) -> str:
    return re.sub(r"{(\w+)}", lambda name: quote(values[name[1]]), path)


def resolve(contract: Document, node: Document) -> Document:
    """Return what a reference leads to."""
    while "$ref" in node:
        target = contract
        for name in node["$ref"].removeprefix("#/").split("/"):
            target = target[name]
        node = target
    return node


def make_longest(schema: Document, text: str = WIDEST) -> str:
    """Return the longest value of a parameter; a list as one text with commas."""
    match schema:
        case {"const": value}:
            return str(value)
        case {"enum": values}:
            return max(map(str, values), key=len)
        case {"anyOf": parts}:
            return max((make_longest(part, text) for part in parts), key=len)
        case {"type": "array", "items": items, "maxItems": count}:
            return ",".join([make_longest(items, text)] * count)
        case {"type": "integer" | "number", "minimum": least, "maximum": greatest}:
            return max(str(least), str(greatest), key=len)
        case {"type": "boolean"}:
            return "false"
        case {"type": "null"}:
            return ""
        case {"type": "string", "pattern": pattern}:
            longest = _longest_match(pattern)
            if longest is None:  # the pattern does not end it, so maxLength does
                fill = text if re.search(pattern, text) else "_"
                return "".join(islice(cycle(fill), schema["maxLength"]))
            return longest
        case {"type": "string", "maxLength": length}:
            return "".join(islice(cycle(text), length))
    raise AssertionError(f"{schema} has no longest value")


def _longest_match(pattern: str) -> str | None:
    """Return a text of the greatest length that a pattern matches; None if it has none."""
    tree = _parser.parse(pattern)
    ends = [node for node in tree if node[0] is _constants.AT]
    return _expand(tree) if len(ends) >= 2 else None


def _expand(tree: Any) -> str | None:
    result = ""
    for kind, value in tree:
        match kind:
            case _constants.AT:
                part: str | None = ""
            case _constants.LITERAL:
                part = chr(value)
            case _constants.IN:
                part = _last_of(value)
            case _constants.SUBPATTERN:
                part = _expand(value[-1])
            case _constants.BRANCH:
                parts = [_expand(branch) for branch in value[1]]
                part = None if None in parts else max((p for p in parts if p is not None), key=len)
            case _constants.MAX_REPEAT:
                _, greatest, repeated = value
                unit = _expand(repeated)
                is_endless = greatest is _constants.MAXREPEAT or unit is None
                part = None if is_endless else str(unit) * greatest
            case _:
                raise AssertionError(f"{kind} is not modelled")
        if part is None:
            return None
        result += part
    return result


def _last_of(members: Any) -> str:
    kind, value = members[-1]
    return chr(value[1] if kind is _constants.RANGE else value)
