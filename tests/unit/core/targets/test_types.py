"""The parameter TargetTypes: what it takes, and that each mistake names its field; numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.deploy import check_declared
from deploy.parts import DeployError
from plaza.core.targets import Description, descriptions
from plaza.core.targets.target_ids import TargetId
from plaza.core.targets.types import OWN, number_of, parse_types
from plaza.infra.runtime.settings import BadSettings


def parse(**types: Any) -> Any:
    return parse_types(json.dumps(types))


def test_types_are_created_by_a_server_or_by_their_first_reaction() -> None:
    [article, video] = parse(
        article={"create": "server"}, video={"create": "first_reaction", "pattern": "[0-9]+"}
    )
    assert (article.name, video.name) == ("article", "video")
    assert article.external
    assert not article.external.by_first_reaction
    assert article.external.pattern.fullmatch("8f3a")
    assert video.external
    assert video.external.by_first_reaction
    assert not video.external.pattern.fullmatch("8f3a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "not an object"),
        ("{", "no JSON"),
        (f'{{"a": {" " * 500}}}', "characters"),
        ('{"a": {"create": "server"}, "a": {"create": "server"}}', "twice"),
        ('{"article": []}', "TargetTypes.article is not an object"),
        ('{"Article": {"create": "server"}}', "TargetTypes.Article: a name"),
        *((f'{{"{name}": {{"create": "server"}}}}', "the name is taken") for name in OWN),
        ('{"order": {"create": "server"}}', "TargetTypes.order: the name is taken"),
        ('{"article": {}}', "TargetTypes.article.create"),
        ('{"article": {"create": "server", "owner": 1}}', "TargetTypes.article.owner"),
        ('{"article": {"create": "server", "pattern": "["}}', "TargetTypes.article.pattern"),
        ('{"article": {"create": "server", "pattern": 7}}', "TargetTypes.article.pattern"),
    ],
)
def test_a_mistake_is_named(text: str, message: str) -> None:
    with pytest.raises(BadSettings, match=message):
        parse_types(text)


def test_a_deployment_has_eight_types_at_most() -> None:
    types = {f"t{n}": {"create": "server"} for n in range(9)}
    with pytest.raises(BadSettings, match="up to 8"):
        parse(**types)


@pytest.mark.parametrize("text", ["a", "8f3a", "A.b_c:d-e", "x" * 64, "0"])
def test_an_id_has_letters_digits_and_four_signs(text: str) -> None:
    assert TargetId.form.fullmatch(text)


@pytest.mark.parametrize("text", ["", "-a", ".a", "_", "a b", "a/b", "é", "a\n", "x" * 65, "a%20"])
def test_other_ids_are_none(text: str) -> None:
    assert not TargetId.form.fullmatch(text)


@given(st.from_regex(TargetId.form, fullmatch=True), st.from_regex(TargetId.form, fullmatch=True))
def test_numbers_fit_into_ids_and_tell_ids_apart(first: str, other: str) -> None:
    assert 0 <= number_of("article", first) < 2**63
    assert (number_of("article", first) == number_of("article", other)) == (first == other)
    assert number_of("article", first) != number_of("video", first)


def test_a_number_never_changes() -> None:
    assert number_of("article", "8f3a") == NUMBER


NUMBER = 5784227425175492540


@pytest.mark.parametrize(
    ("target_types", "kinds", "field"),
    [
        ('{"article": {"create": "crowd"}}', "", r"TargetTypes\.article\.create"),
        ("[]", "", "TargetTypes"),
        ("", '{"bookmark": {"targets": ["song"]}}', r"Kinds\.bookmark\.targets"),
    ],
)
def test_a_deploy_and_a_stack_name_the_field_that_is_wrong(
    target_types: str, kinds: str, field: str
) -> None:
    with pytest.raises(DeployError, match=field):
        check_declared(target_types, kinds)
    check_declared('{"song": {"create": "server"}}', '{"bookmark": {"targets": ["song"]}}')


def test_types_of_a_wing_that_is_off_do_not_exist() -> None:
    code = (
        "import json; from plaza.core.reactions.kinds import CONTENT_TYPES, FOLLOW, LIKE;"
        "from plaza.core.targets.types import TYPES, list_owned;"
        "print(json.dumps([[*TYPES], sorted(LIKE.targets), sorted(FOLLOW.targets),"
        " [*CONTENT_TYPES], len(list_owned())]))"
    )
    env = os.environ | {
        "PLAZA_KINDS": "",
        "PLAZA_WINGS_OFF": "social,commerce",
        "PLAZA_TARGET_TYPES": '{"article": {"create": "server"}}',
    }
    completed = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert json.loads(completed.stdout) == [["user", "article"], ["article"], ["user"], [], 1]


def test_an_app_may_have_posts_of_its_own_without_the_wing_social() -> None:
    code = (
        "import json; from plaza.core.reactions.kinds import CONTENT_TYPES, LIKE;"
        "print(json.dumps([[*CONTENT_TYPES], [*LIKE.targets]]))"
    )
    env = os.environ | {
        "PLAZA_KINDS": "",
        "PLAZA_WINGS_OFF": "social",
        "PLAZA_TARGET_TYPES": '{"post": {"create": "server"}}',
    }
    completed = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert json.loads(completed.stdout) == [[], ["post"]], "no text of Plaza, and no route of one"


def test_targets_of_an_unknown_type_have_no_description() -> None:
    users = [("user", 7), ("song", 1)]
    assert descriptions.describe_all(users) == {("user", 7): Description("7")}
