"""``env``, ``invoke``, ``start``, ``stop`` and ``operate``: an operator's hands on a local stack.

None of them needs a part that is down.
"""

import argparse
import getpass
import json
import re
import shlex
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from cli.operator_commands import run_operator_command
from cli.paths import CommandError
from local.stack.logs import find_function
from local.stack.stack import Stack

SERVERS = ("redis", "mysql")
_TOKEN = re.compile(r'<meta name="plaza-control" content="([^"]+)"')
_TIMEOUT_S = 90


def print_environment(args: argparse.Namespace) -> int:
    """Print lines for a shell: URL, REDIS_URL, MYSQL_URL, and the login of the program mysql."""
    stack = Stack.load(args.dir, require_all=False)
    for line in describe_environment(stack):
        print(line)
    return 0


def describe_environment(stack: Stack) -> list[str]:
    """Return the lines that ``print_environment`` prints."""
    mysql = urlsplit(stack.mysql_url)
    values = {
        "URL": stack.base_url,
        "ISSUER": f"{stack.web_url}/issuer",
        "REDIS_URL": stack.redis_url.partition(",")[0],
        "MYSQL_URL": stack.mysql_url,
        "MYSQL_HOST": mysql.hostname or "",
        "MYSQL_TCP_PORT": str(mysql.port or 3306),
        "MYSQL_PWD": mysql.password or "",
    }
    user, database = shlex.quote(mysql.username or ""), mysql.path[1:]
    return [
        *(f"export {name}={shlex.quote(value)}" for name, value in values.items()),
        f"export MYSQL_DATABASE={shlex.quote(database)}",
        f'mysql() {{ command mysql --user={user} "$@"; }}',  # no variable names the user
    ]


def invoke(args: argparse.Namespace) -> int:
    """Run a function and print its result. Raises CommandError."""
    stack = Stack.load(args.dir, require_all=False)
    try:
        event = json.loads(args.event)
    except ValueError:
        raise CommandError(f"{args.event[:60]!r} is not JSON") from None
    function = find_function(stack.deployed.functions, args.function)
    print(json.dumps(stack.invoke(function, event)))
    return 0


def operate(args: argparse.Namespace) -> int:
    """Run a command by the local Lambda service. Raises CommandError."""
    stack = Stack.load(args.dir, require_all=False)
    return run_operator_command(
        lambda event: stack.invoke("Operate", dict(event)), f"local:{getpass.getuser()}", args
    )


def start_server(args: argparse.Namespace) -> int:
    """Start a server, as the page "Break it" does: it then ends with the stack, too. Raises
    CommandError."""
    return _change_server("start", args)


def stop_server(args: argparse.Namespace) -> int:
    """Stop a server. Raises CommandError."""
    return _change_server("stop", args)


def _change_server(action: str, args: argparse.Namespace) -> int:
    state = _control(Stack.load(args.dir, require_all=False), f"{action}-{args.part}")
    print(f"{args.part} is {state[args.part]}")
    return 0


def _control(stack: Stack, action: str) -> dict[str, Any]:
    """Ask the process that serves the web pages, which lives as long as the stack."""
    address = urlsplit(stack.web_url)
    connection = HTTPConnection(str(address.hostname), address.port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/console/")
        token = _TOKEN.search(connection.getresponse().read().decode())
        headers = {"x-plaza-control": token[1] if token else "", "content-type": "application/json"}
        connection.request("POST", "/local/control", json.dumps({"action": action}), headers)
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    except (OSError, HTTPException, ValueError) as error:
        raise CommandError(f"the web server of the stack does not answer: {error}") from None
    finally:
        connection.close()
    if response.status != 200:
        raise CommandError(str(answer.get("detail", answer)))
    return answer
