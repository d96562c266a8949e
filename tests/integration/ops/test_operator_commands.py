"""``ops server-keys`` and ``ops webhooks`` run operator commands and print their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from ops.__main__ import build_parser
from plaza.infra.aws import secrets
from tests.support.plaza import World, forget

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(
    plaza: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Run]:
    """Return (exit status, printed text) of an action."""
    monkeypatch.setenv("PLAZA_WEBHOOK_KEY_ID", "plaza/integrations/webhooks")
    monkeypatch.setattr(secrets, "read", lambda _: "k" * 64)
    forget()

    def run_action(*action: str) -> tuple[int, str]:
        args = build_parser().parse_args(["--environment", *action])
        return args.command(args), capsys.readouterr().out.rstrip()

    yield run_action
    forget()


def test_a_server_key_is_made_listed_and_ended(run: Run) -> None:
    _, key = run("server-keys", "make", "web", "--scope", "export", "--scope", "read")
    key_id = key.split("_")[1]
    _, listed = run("server-keys", "list", "--json")
    [row] = json.loads(listed)
    assert (row["key_id"], row["scopes"], row["requests_per_s"]) == (
        key_id,
        ["export", "read"],
        100,
    )
    assert run("server-keys", "end", key_id)[1].startswith(f"ended {key_id}; ")
    status, table = run("server-keys")
    assert status == 0
    assert f"{key_id}  web   export,read" in table


def test_a_webhook_is_made_changed_and_ended(run: Run) -> None:
    assert run("webhooks") == (0, "")
    _, made = run("webhooks", "make", "https://example.com/plaza", "--type", "like.added")
    webhook_id, secret = made.split()
    assert run("webhooks", "change", webhook_id, "--type", "post.created") == (0, "")
    assert run("webhooks", "rotate", webhook_id)[1] not in ("", secret)
    [row] = json.loads(run("webhooks", "list", "--json")[1])
    assert (row["url"], row["types"]) == ("https://example.com/plaza", ["post.created"])
    assert run("webhooks", "end", webhook_id) == (0, "")
