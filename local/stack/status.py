"""``status``: the parts of the stack, and the messages in its queues."""

import argparse
from collections.abc import Iterator

from cli.output import console, new_table
from local.stack import servers
from local.stack.aws import answers_http
from local.stack.servers import strip_credentials
from local.stack.stack import Stack


def main(args: argparse.Namespace) -> int:
    """Print each part and each queue. Returns 1 when a part does not answer."""
    stack = Stack.load(args.dir, require_all=False)
    pids = {process.name: str(process.pid) for process in stack.processes()}
    mysql = strip_credentials(stack.mysql_url).removeprefix("mysql://")
    parts = [
        ("HTTP API", pids["lambda"], stack.base_url, _answers(stack.lambda_url)),
        ("AWS", pids["ministack"], stack.aws_endpoint_url, _answers(stack.aws_endpoint_url)),
        *_check_redis(stack),
        ("MySQL", pids.get("mysql", "external"), mysql, servers.answers_mysql(stack.mysql_url)),
    ]
    table = new_table("part", "pid", "address", "", left=("address", ""))
    for name, pid, address, is_up in parts:
        table.add_row(name, pid, address, "[green]up[/green]" if is_up else "[red]down[/red]")
    console.print(table)
    console.print()
    queues = new_table("queue", "backlog", "in flight or delayed")
    for name, (visible, hidden) in sorted(count_messages(stack).items()):
        queues.add_row(name, str(visible), str(hidden))
    console.print(queues)
    return 0 if all(part[-1] for part in parts) else 1


def count_messages(stack: Stack) -> dict[str, tuple[int, int]]:
    """Return queue -> (backlog, messages in flight or delayed)."""
    sqs = stack.connect("sqs")
    counts = {}
    for name, url in stack.queues.items():
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        hidden = int(attributes.get("ApproximateNumberOfMessagesNotVisible", 0))
        delayed = int(attributes.get("ApproximateNumberOfMessagesDelayed", 0))
        counts[name] = (int(attributes["ApproximateNumberOfMessages"]), hidden + delayed)
    return counts


def _answers(url: str) -> bool:
    return answers_http(int(url.rsplit(":", 1)[1]))


def _check_redis(stack: Stack) -> Iterator[tuple[str, str, str, bool]]:
    pids = [str(process.pid) for process in stack.redis.processes] if stack.redis else []
    for number, url in enumerate(servers.spread_url(stack.redis_url)):
        address = url.rsplit("@", 1)[-1].removeprefix("redis://")
        pid = pids[number] if pids else "external"
        yield "Redis", pid, address, servers.answers_redis(url)
