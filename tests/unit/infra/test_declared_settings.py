"""The settings that contexts declare: defaults, invalid ones, and whose they are."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest

from plaza.commerce.flash_sales.settings import SaleSettings, sale_settings
from plaza.core.reactions.settings import ReactionSettings, reaction_settings
from plaza.infra.runtime.process import reset_process
from plaza.infra.runtime.settings import BadSettings, Settings
from plaza.people.auth.settings import AuthSettings, auth_settings
from plaza.social.feed.settings import FeedSettings, feed_settings
from plaza.social.recommendations.settings import RankingSettings, ranking_settings
from tests.unit.infra.test_settings import GOOD, set_only
from tests.unit.policy.modules import PLAZA, nodes_of

READERS: dict[type[Any], Callable[[], Any]] = {
    AuthSettings: auth_settings,
    FeedSettings: feed_settings,
    RankingSettings: ranking_settings,
    ReactionSettings: reaction_settings,
    SaleSettings: sale_settings,
}
NUMBERS = [(reader, name) for kind, reader in READERS.items() for name in kind._field_defaults]
Change = Callable[..., None]


@pytest.fixture
def change(monkeypatch: pytest.MonkeyPatch) -> Iterator[Change]:
    """``change(PLAZA_SMS_SENDER="sns")``: the environment of this process."""

    def set_up(**values: str) -> None:
        set_only(monkeypatch, GOOD | values)
        reset_process()

    set_up()
    yield set_up
    reset_process()


@pytest.mark.parametrize(("reader", "name"), NUMBERS)
@pytest.mark.parametrize("value", ["many", "0", "-5"])
def test_an_invalid_number_is_named(
    change: Change, reader: Callable[[], Any], name: str, value: str
) -> None:
    variable = f"PLAZA_{name.upper()}"
    change(**{variable: value})
    with pytest.raises(BadSettings, match=variable):
        reader()


@pytest.mark.parametrize(("reader", "name"), NUMBERS)
def test_a_number_with_a_whole_default_is_whole(
    change: Change, reader: Callable[[], Any], name: str
) -> None:
    is_whole = isinstance(getattr(reader(), name), int)
    change(**{f"PLAZA_{name.upper()}": "1.5"})
    if is_whole:
        with pytest.raises(BadSettings, match="not a whole number"):
            reader()
    else:
        assert getattr(reader(), name) == 1.5


@pytest.mark.parametrize(
    ("reader", "name", "value"),
    [
        (auth_settings, "PLAZA_SMS_SENDER", "post"),
        (auth_settings, "PLAZA_SMS_SENDER", "echo"),
        (auth_settings, "PLAZA_SMS_COUNTRIES", "us"),
        (auth_settings, "PLAZA_SMS_COUNTRIES", "US,+49"),
        (auth_settings, "PLAZA_SMS_NUMBER_TYPES", "mobile,premium_rate"),
        (auth_settings, "PLAZA_SMS_NUMBER_TYPES", "landline"),
        (ranking_settings, "PLAZA_HOT_HALF_LIFE_H", "5"),
        (ranking_settings, "PLAZA_HOT_HALF_LIFE_H", "73"),
        (ranking_settings, "PLAZA_REVIEW_WEIGHTS", "likes=50"),
        (ranking_settings, "PLAZA_REVIEW_WEIGHTS", "likes=0,length=0,images=0,age=0,author=0"),
        (ranking_settings, "PLAZA_REVIEW_WEIGHTS", "likes=50,length=15,images=10,age=15,fame=10"),
        (ranking_settings, "PLAZA_REVIEW_WEIGHTS", "likes=-1,length=15,images=10,age=15,author=10"),
        (
            ranking_settings,
            "PLAZA_REVIEW_WEIGHTS",
            "likes=1.5,length=15,images=10,age=15,author=10",
        ),
        (
            ranking_settings,
            "PLAZA_REVIEW_WEIGHTS",
            "likes=5,length=1,images=1,age=1,author=1,age=3",
        ),
        (
            ranking_settings,
            "PLAZA_REVIEW_WEIGHTS",
            "likes=5,length=1,images=1,age=1,author=1000001",
        ),
        (ranking_settings, "PLAZA_REVIEW_HALVES", "likes=0,length=200,images=1,age=90,author=50"),
        (ranking_settings, "PLAZA_REVIEW_HALVES", "likes=4;length=200;images=1;age=90;author=50"),
        *((ranking_settings, "PLAZA_HOT_HALF_LIFE_H", text) for text in ("many", "0", "-5", "6.5")),
    ],
)
def test_an_invalid_setting_is_named(
    change: Change, reader: Callable[[], Any], name: str, value: str
) -> None:
    change(**{name: value})
    with pytest.raises(BadSettings, match=name):
        reader()


def test_codes_are_sent_by_sns_or_put_into_redis_on_a_local_stack(change: Change) -> None:
    assert auth_settings().sms_sender is None
    change(PLAZA_SMS_SENDER="sns")
    assert auth_settings().sms_sender == "sns"
    change(PLAZA_SMS_SENDER="echo", PLAZA_ENVIRONMENT="local")
    assert auth_settings().sms_sender == "echo"


def test_text_messages_are_limited_to_the_named_countries_and_types(change: Change) -> None:
    assert auth_settings().sms_countries == frozenset()
    assert auth_settings().sms_number_types == {"mobile", "fixed_line_or_mobile"}
    change(PLAZA_SMS_COUNTRIES="US, DE", PLAZA_SMS_NUMBER_TYPES="mobile,voip")
    assert auth_settings().sms_countries == frozenset({"US", "DE"})
    assert auth_settings().sms_number_types == frozenset({"mobile", "voip"})


def test_weights_are_read_by_name_in_any_order(change: Change) -> None:
    change(PLAZA_REVIEW_WEIGHTS="age=1,author=0,images=2,length=3,likes=4")
    weights = ranking_settings().review_weights
    assert list(weights.items()) == [
        ("likes", 4),
        ("length", 3),
        ("images", 2),
        ("age", 1),
        ("author", 0),
    ]
    assert ranking_settings().review_halves.keys() == weights.keys()


def test_settings_are_read_once_in_a_process(
    change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = feed_settings()
    monkeypatch.setenv("PLAZA_FAN_OUT_LIMIT", "3")
    assert feed_settings() is before
    reset_process()
    assert feed_settings().fan_out_limit == 3


def test_a_setting_of_one_context_is_declared_there() -> None:
    """Infra declares what it reads itself, or what several contexts read."""
    readers = defaultdict[str, set[str]](set)
    for file in PLAZA.rglob("*.py"):
        parts = file.relative_to(PLAZA).parts
        context = parts[0] if parts[0] == "infra" else "/".join(parts[:2])
        for node in nodes_of(file):
            match node:
                case ast.Attribute(value=ast.Call(func=ast.Name(id="settings")), attr=name):
                    readers[name].add(context)
                case ast.Attribute(value=ast.Name(id="config"), attr=name):
                    readers[name].add(context)
    for field in fields(Settings):
        by = readers[field.name]
        if field.name not in {"environment", "auth_secret_id"}:  # a secret is read by a method
            assert "infra" in by or len(by) > 1, field.name
