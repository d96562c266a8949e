"""What CloudFormation does to the resources of a stack when its parameters change.

Conditions are evaluated, and the properties whose change replaces a resource are read from the
schemas of AWS that cfn-lint has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cli.paths import TOOLS

REGION = "eu-central-1"
_NOTHING = object()
_STACK = "arn:aws:cloudformation:eu-central-1:111122223333:stack/any/1a2b-3c4d-5e6f-7a8b-9c0d"
_PSEUDO = {
    "AWS::AccountId": "111122223333",
    "AWS::NoValue": _NOTHING,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackId": _STACK,
    "AWS::URLSuffix": "amazonaws.com",
}


@dataclass(frozen=True)
class Update:
    """Names of resources."""

    created: set[str]
    deleted: set[str]
    replaced: set[str]
    changed: set[str]
    """In place."""


class Stack:
    """A stack with a processed template and parameters; the others have their defaults."""

    def __init__(self, template: Mapping[str, Any], parameters: Mapping[str, str]) -> None:
        declared = template["Parameters"]
        assert set(parameters) <= set(declared)
        self._template = template
        self._values = _PSEUDO | {
            name: parameters.get(name, item.get("Default", f"any {name}"))
            for name, item in declared.items()
        }
        self.resources: dict[str, dict[str, Any]] = {
            name: self.resolve(resource)
            for name, resource in template["Resources"].items()
            if self.holds(resource.get("Condition"))
        }

    def holds(self, condition: str | None) -> bool:
        """Return whether a condition of the template is true."""
        return condition is None or self._is_true(self._template["Conditions"][condition])

    def broken_rules(self) -> set[str]:
        """Return the rules of the template that refuse these parameters."""
        return {
            name
            for name, rule in self._template.get("Rules", {}).items()
            if self._is_true(rule["RuleCondition"])
            and not all(self._is_true(item["Assert"]) for item in rule["Assertions"])
        }

    def resolve(self, value: Any) -> Any:
        """Return a value with parameters and conditions resolved; what other resources return is
        left as it is."""
        match value:
            case {"Ref": name} if name in self._values:
                return self._values[name]
            case {"Fn::If": [condition, yes, no]}:
                return self.resolve(yes if self.holds(condition) else no)
            case {"Fn::Sub": str(text)}:
                return {"Fn::Sub": re.sub(r"\${([\w:]+)}", self._insert, text)}
            case {"Fn::FindInMap": [name, first, second]}:
                mapping = self._template["Mappings"][name]
                return mapping[self.resolve(first)][self.resolve(second)]
            case dict():
                resolved = {key: self.resolve(item) for key, item in value.items()}
                return {key: item for key, item in resolved.items() if item is not _NOTHING}
            case list():
                return [item for item in map(self.resolve, value) if item is not _NOTHING]
        return value

    def _insert(self, match: re.Match[str]) -> str:
        return str(self._values.get(match[1], match[0]))

    def _is_true(self, expression: Any) -> bool:
        match expression:
            case {"Condition": name}:
                return self.holds(name)
            case {"Fn::Not": [inner]}:
                return not self._is_true(inner)
            case {"Fn::And": inner}:
                return all(map(self._is_true, inner))
            case {"Fn::Or": inner}:
                return any(map(self._is_true, inner))
            case {"Fn::Equals": [one, other]}:
                return str(self.resolve(one)) == str(self.resolve(other))
        raise AssertionError(f"{expression} is not known")


def compare(before: Stack, after: Stack) -> Update:
    """Return what an update does. What refers to a replaced resource changes, too."""
    old, new = before.resources, after.resources
    replaced: set[str] = set()
    changed: set[str] = set()
    pending = True
    while pending:
        pending = False
        for name in (old.keys() & new.keys()) - replaced:
            properties = _changed_properties(old[name], new[name], replaced)
            if properties & _replacing_properties(new[name]["Type"]):
                replaced.add(name)
                pending = True
            elif properties:
                changed.add(name)
    return Update(set(new) - set(old), set(old) - set(new), replaced, changed - replaced)


def references(value: Any) -> set[str]:
    """Return the names of the resources that a resolved value refers to."""
    match value:
        case {"Ref": str(name)}:
            return {name}
        case {"Fn::GetAtt": [name, _]}:
            return {name}
        case {"Fn::Sub": str(text)}:
            return {name.partition(".")[0] for name in re.findall(r"\${([\w:.]+)}", text)}
        case {"Fn::Sub": [text, names]}:
            own = references({"Fn::Sub": text}) - set(names)
            return own.union(*map(references, names.values()))
        case dict():
            return set().union(*map(references, value.values()))
        case list():
            return set().union(*map(references, value))
    return set()


def _changed_properties(
    old: Mapping[str, Any], new: Mapping[str, Any], replaced: set[str]
) -> set[str]:
    before, after = old.get("Properties", {}), new.get("Properties", {})
    return {
        name
        for name in before.keys() | after.keys()
        if before.get(name) != after.get(name) or references(after.get(name)) & replaced
    }


@cache
def _replacing_properties(type_: str) -> set[str]:
    if type_.startswith("Custom::"):
        return {"ServiceToken"}
    [folder] = TOOLS.parent.glob("lib/python3*/site-packages/cfnlint/data/schemas")
    schema = json.loads(_find_schema(folder, type_).read_text())
    paths = schema.get("createOnlyProperties", []) + schema.get(
        "conditionalCreateOnlyProperties", []
    )
    return {path.removeprefix("/properties/").partition("/")[0] for path in paths}


def _find_schema(folder: Path, type_: str) -> Path:
    names = json.loads((folder / "providers" / f"{REGION}.json").read_text())
    return folder / "resources" / f"{names[type_]}.json"
