"""Names and settings read from a deployed stack."""

import pytest

from local.deployment import name_queue, read_environment
from local.servers import without_credentials


@pytest.mark.parametrize(
    ("logical_id", "name"),
    [
        ("ReactionsQueue", "reactions"),
        ("ReactionsDlq", "reactions_dlq"),
        ("SaveReactionsQueue", "save_reactions"),
    ],
)
def test_a_queue_is_named_as_its_setting_is(logical_id: str, name: str) -> None:
    assert name_queue(logical_id) == name


def test_only_settings_all_functions_share_are_those_of_the_stack() -> None:
    api = {"PLAZA_REDIS_URL": "r", "PLAZA_TIMEOUT_S": "1", "PATH": "/bin"}
    migrate = {"PLAZA_REDIS_URL": "r", "PLAZA_TIMEOUT_S": "280"}
    assert read_environment([api, migrate]) == {"PLAZA_REDIS_URL": "r"}


def test_every_queue_that_one_function_knows_is_known() -> None:
    functions = [{"PLAZA_QUEUE_REACTIONS_URL": "a"}, {"PLAZA_QUEUE_REBUILDS_URL": "b"}, {}]
    assert read_environment(functions) == {
        "PLAZA_QUEUE_REACTIONS_URL": "a",
        "PLAZA_QUEUE_REBUILDS_URL": "b",
    }


def test_the_address_in_the_template_has_no_password() -> None:
    url = "mysql://plaza:se%40cret@127.0.0.1:3307/plaza"
    assert without_credentials(url) == "mysql://127.0.0.1:3307/plaza"
