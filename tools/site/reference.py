"""The API reference: a list of all operations, which the search of the site finds, Redoc, and the
page where the types of problems lead."""

import json
import re
from pathlib import Path
from typing import Any

from cli.paths import CONTRACT
from tools.site import operations

PROBLEM = re.compile(
    r"^\| (\d{3}) \| `([a-z-]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE
)
"""A row of docs/problems.md: status, last part of the type, title, what is wrong, what to do."""

REDOC = "redoc.html"
_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'self' file: data: blob: 'unsafe-inline' 'unsafe-eval'">
<title>API reference - Plaza</title>
<link rel="icon" href="assets/images/favicon.png">
<style>
  body { margin: 0 }
  nav { font: 16px sans-serif; padding: 12px 20px; background: #263238 }
  nav a { color: #fff }
  @media (prefers-color-scheme: dark) {
    body { background: #121416; color: #d8dcdf }
    #reference h5, #reference caption, #reference h5 span { color: #a9b1b7 !important }
    #reference h5 svg polygon, #reference button svg polygon { fill: #a9b1b7 }
  }
</style>
<nav><a href="reference.html">Plaza documentation</a></nav>
<div id="reference"></div>
<script src="assets/redoc.js"></script>
<script>
  const dark = matchMedia("(prefers-color-scheme: dark)").matches
  Redoc.init(CONTRACT, {...OPTIONS, theme: dark ? DARK : {}}, document.getElementById("reference"))
</script>
"""
_HEAD = """\
# API reference

All operations of the [contract](openapi.json). Each leads to its parameters, samples for curl,
TypeScript and Python, an example of its response, and its problems. [The HTTP API](api.md) has
what they have in common; [all schemas](redoc.html) are on a page of their own.

## Samples

On a local stack, which `make run` starts:

=== "curl"

    ```
    eval "$(.venv/bin/python -m local env)"  # sets URL
    TOKEN=$(.venv/bin/python -m local token --user 7)
    ```

=== "TypeScript"

    ```ts
    import { Plaza } from "plaza-client";
    const plaza = new Plaza("https://api.example");
    const { challenge } = await plaza.sendCode("+14155550123");
    await plaza.signIn(challenge, "123456");
    ```

=== "Python"

    ```py
    from plaza_client import Plaza
    plaza = Plaza("https://api.example", token="...")
    ```
"""
_OPTIONS = {"hideDownloadButton": True, "expandResponses": "200,201,202", "pathInMiddlePanel": True}
_TEXT, _LINE, _RAISED = "#d8dcdf", "#3a4248", "#1d2226"
_DARK = {
    "colors": {
        "primary": {"main": "#8fb8ff"},
        "success": {"main": "#6cc070"},
        "error": {"main": "#ff8a80"},
        "text": {"primary": _TEXT, "secondary": "#a9b1b7"},
        "border": {"dark": _LINE, "light": _LINE},
        "gray": {"50": _RAISED, "100": _RAISED},
        "responses": {
            "success": {"backgroundColor": "#17301a"},
            "error": {"backgroundColor": "#361b1b"},
        },
    },
    "schema": {"nestedBackground": _RAISED, "typeNameColor": _TEXT, "linesColor": _LINE},
    "sidebar": {"backgroundColor": "#181b1e", "textColor": _TEXT},
    "typography": {
        "code": {"color": "#ff9e94", "backgroundColor": _RAISED},
        "links": {"color": "#8fb8ff", "hover": "#b3cfff"},
    },
}
_LOGO = "https://cdn.redoc.ly/redoc/logo-mini.svg"


def write_reference(pages: Path) -> None:
    """Write the list of operations, the page of Redoc with the contract in it, and problems."""
    problems = pages / "problems.md"
    problems.write_text(list_problems(problems.read_text()))
    contract = json.loads(CONTRACT.read_text())
    (pages / "reference.md").write_text(list_operations(contract))
    (pages / "reference").mkdir()
    for tag in contract["tags"]:
        page = operations.make_page(contract, tag, REDOC)
        (pages / operations.page_of(tag["name"])).write_text(page)
    values = {"CONTRACT": contract, "OPTIONS": _OPTIONS, "DARK": _DARK}
    page = re.sub("|".join(values), lambda match: to_script(values[match[0]]), _PAGE)
    (pages / REDOC).write_text(page)


def list_problems(page: str) -> str:
    """Return the page of problems with a section for each, whose anchor is its slug, instead of the
    table: the search of the site finds sections, and ``type`` leads to one."""
    sections = [
        f"## {slug}\n\n**{title}**, status {status}. {wrong}\n\n*What to do:* {to_do}\n"
        for status, slug, title, wrong, to_do in PROBLEM.findall(page)
    ]
    before, _, _ = page.partition("| status | slug |")  # the table is the last of the page
    return before + "\n".join(sections)


def drop_logo(redoc: str) -> str:
    """Return the script of Redoc without the picture that it loads from another host."""
    return redoc.replace(_LOGO, "data:,")


def to_script(values: object) -> str:
    """Return JSON that is safe within a script of HTML."""
    return json.dumps(values).replace("<", "\\u003c")


def list_operations(contract: dict[str, Any]) -> str:
    """Return a page with a table of the operations of each tag, and how to run the samples."""
    lines = [_HEAD]
    for tag in contract["tags"]:
        page = operations.page_of(tag["name"])
        lines += ["", f"## {tag['name'].capitalize()}", "", tag["description"], ""]
        lines += ["| operation | request |", "|---|---|"]
        lines += [
            f"| [{item.title}]({page}#{item.anchor}) | `{item.call.method} {item.call.path}` |"
            for item in operations.list_calls(contract)
            if item.tag == tag["name"]
        ]
    return "\n".join(lines) + "\n"
