"""Names and settings read from a deployed stack."""

from pathlib import Path

import pytest

from local.stack.deployment import hash_sources, list_queues, name_queue, read_environment
from local.stack.servers import strip_credentials


@pytest.mark.parametrize(
    ("logical_id", "name"),
    [
        ("ReactionsQueue", "reactions"),
        ("ReactionsDlq", "reactions_dlq"),
        ("SaveReactionsQueue", "save_reactions"),
    ],
)
def test_queue_is_named_like_its_setting(logical_id: str, name: str) -> None:
    assert name_queue(logical_id) == name


def test_settings_of_the_stack_are_those_of_all_functions() -> None:
    api = {"PLAZA_REDIS_URL": "r", "PLAZA_TIMEOUT_S": "1", "PATH": "/bin"}
    migrate = {"PLAZA_REDIS_URL": "r", "PLAZA_TIMEOUT_S": "280"}
    assert read_environment([api, migrate]) == {"PLAZA_REDIS_URL": "r"}


def test_queues_are_listed_with_the_url_of_the_first() -> None:
    assert list_queues({"rebuilds": "q/rebuilds", "orders_dlq": "q/orders_dlq"}) == {
        "PLAZA_QUEUES_URL": "q/orders_dlq",
        "PLAZA_QUEUES": "orders_dlq,rebuilds",
    }


def test_address_in_the_template_has_no_password() -> None:
    url = "mysql://plaza:se%40cret@127.0.0.1:3307/plaza"
    assert strip_credentials(url) == "mysql://127.0.0.1:3307/plaza"


def test_digest_changes_with_each_input_of_sam_build(tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text("Resources: {}")
    code = tmp_path / "functions" / "likes" / "app.py"
    code.parent.mkdir(parents=True)
    code.write_text("x = 1")
    first = hash_sources(template)
    cached = code.parent / "__pycache__"
    cached.mkdir()
    (cached / "app.pyc").write_text("compiled")
    assert hash_sources(template) == first
    code.write_text("x = 2")
    assert hash_sources(template) != first
    code.write_text("x = 1")
    assert hash_sources(template) == first
    code.rename(code.with_name("other.py"))
    assert hash_sources(template) != first
    code.with_name("other.py").rename(code)
    alarms = tmp_path / "alarms.json"
    alarms.write_text("{}")
    included = hash_sources(template)
    assert included != first
    alarms.write_text('{"Alarm": {}}')
    assert hash_sources(template) != included
