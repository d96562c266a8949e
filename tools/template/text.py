"""Templates as text: their short tags, their blocks, and data as YAML."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

WIDTH = 120
_BLOCK = re.compile(
    r"^(?P<indent> *)# BEGIN (?P<name>[a-z ]+?)(?: \([^\n]*\))?\n(?P<text>.*?)^ *# END (?P=name)\n",
    re.MULTILINE | re.DOTALL,
)
_PLAIN = re.compile(r"[A-Za-z$/][\w$/.*-]*(?:::?[\w$/.*-]+)*(?: [\w$/().*-]+)*")
_WORDS = re.compile(r"(?:true|false|yes|no|on|off|null|y|n)", re.IGNORECASE)
_SHORT = {"Ref": "!Ref", "Condition": "!Condition"}


class _Loader(yaml.CSafeLoader):
    """Loads ``!Ref x`` as ``{"Ref": "x"}`` and ``!GetAtt a.b`` as ``{"Fn::GetAtt": "a.b"}``."""


def _construct(loader: yaml.Loader, suffix: str, node: yaml.Node) -> dict[str, Any]:
    value: Any = None
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    elif isinstance(node, yaml.MappingNode):
        value = loader.construct_mapping(node, deep=True)
    return {suffix if suffix in _SHORT else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _construct)


def load(text: str) -> Any:
    """Parse YAML with CloudFormation's short tags, as plain data."""
    return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader


class Shared(NamedTuple):
    """A value that is written once, with an anchor, and by its name wherever it is used again."""

    name: str
    value: Any


def render(value: Any, indent: int = 0) -> str:
    """Return data as lines of YAML with short tags. Below its first level, what fits into a line is
    one. An empty line is between resources."""
    lines = _Writer().write(value, WIDTH - indent, 0)
    return "".join(f"{' ' * indent}{line}".rstrip() + "\n" for line in lines)


def replace_blocks(template: str, blocks: Mapping[str, Any]) -> str:
    """Return a template with the blocks replaced by data. Raises ValueError unless it has each of
    them once."""
    names = [match["name"] for match in _BLOCK.finditer(template)]
    if sorted(names) != sorted(blocks):
        raise ValueError(f"template.yaml has the blocks {names}, and not {sorted(blocks)}")

    def replace(match: re.Match[str]) -> str:
        indent, name = match["indent"], match["name"]
        text = render(blocks[name], len(indent))
        return f"{indent}# BEGIN {name} (make generate)\n{text}{indent}# END {name}\n"

    return _BLOCK.sub(replace, template)


def count_own_lines(template: str) -> int:
    """Return the number of lines outside of blocks."""
    return len(_BLOCK.sub("", template).splitlines())


class _Writer:
    """Writes one document: knows which shared values it has."""

    def __init__(self) -> None:
        self._written: set[str] = set()

    def write(self, value: Any, width: int, level: int) -> Iterator[str]:
        """Yield the lines of a mapping or a list."""
        pairs = (
            ((f"{_scalar(key)}:", item) for key, item in value.items())
            if isinstance(value, dict)
            else (("-", item) for item in value)
        )
        for number, (head, item) in enumerate(pairs):
            if number and not level and "Type" in item:
                yield ""
            line = f"{head} {self._flow(item)}"
            tag, inner = _tag_of(item)
            fits = level and len(line) <= width and not (head == "-" and _is_pair(item))
            if isinstance(item, Shared) and item.name not in self._written:
                self._written.add(item.name)
                tag, inner = f"&{item.name}", item.value
            elif fits or not isinstance(inner, dict | list) or not inner:
                yield line
                continue
            head = f"{head} {tag}".rstrip()
            lines = self.write(inner, width - 2, level + 1)
            yield f"- {next(lines)}" if head == "-" else head
            yield from (f"  {line}" for line in lines)

    def _flow(self, value: Any) -> str:
        """Return a value in one line, which is too long if it has the anchor of a shared value."""
        if isinstance(value, Shared):
            return f"*{value.name}" if value.name in self._written else " " * WIDTH
        tag, inner = _tag_of(value)
        if tag:
            return f"{tag} {self._flow(inner)}"
        if isinstance(value, dict):
            pairs = ", ".join(f"{_scalar(key)}: {self._flow(item)}" for key, item in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        if isinstance(value, list):
            return f"[{', '.join(map(self._flow, value))}]"
        return _scalar(value)


def _is_pair(value: Any) -> bool:
    """Return whether a value is a mapping with one entry, which needs no braces in a list."""
    return isinstance(value, dict) and len(value) == 1 and not _tag_of(value)[0]


def _tag_of(value: Any) -> tuple[str, Any]:
    """Return the short tag of an intrinsic function and its argument; '' for other values."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, inner),) = value.items()
        if name in _SHORT:
            return _SHORT[name], inner
        if name.startswith("Fn::"):
            return f"!{name.removeprefix('Fn::')}", inner
    return "", value


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and not _WORDS.fullmatch(text):
        return text
    if '"' in text and "'" not in text:
        return f"'{text}'"
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{quoted}"'
