"""The printed commands of a started stack."""

from pathlib import Path

import pytest

from local import up
from local.stack.stack import Stack


@pytest.mark.parametrize("demo", [True, False])
def test_printed_commands_sign_in_and_follow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], demo: bool
) -> None:
    stack = Stack(tmp_path)
    stack.base_url, stack.web_url = "http://127.0.0.1:5000", "http://127.0.0.1:5001"
    up.show_welcome(stack, detached=False, demo=demo)
    output = capsys.readouterr().out
    for part in (
        "CHALLENGE=$(curl -s http://127.0.0.1:5000/auth/codes -H 'Content-Type: application/json'"
        """ -d '{"phone": "+14155550123"}' | cut -d '"' -f 4)""",
        f"-m local --dir {tmp_path} sms +14155550123",
        """-d '{"challenge": "'$CHALLENGE'", "code": "'$CODE'"}'""",
        f"-m local --dir {tmp_path} token --user 7",
        "http://127.0.0.1:5001/console/",
    ):
        assert part in output
    assert ("/users/9000001/followers/me" in output) is demo
    assert "Ctrl-C stops it" in output
