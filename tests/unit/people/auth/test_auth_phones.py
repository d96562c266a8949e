"""Phone numbers in their usual and in hostile spellings."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plaza.infra.runtime.errors import BadInput
from plaza.people.auth.phones import parse_phone, require_destination


@pytest.mark.parametrize(
    ("text", "phone"),
    [
        ("+8613800138000", "+8613800138000"),
        ("+86 138 0013 8000", "+8613800138000"),
        ("+1 (202) 555-0123", "+12025550123"),
        ("+44 (0) 7400 123456", "+447400123456"),
        ("+49 1512 3456789", "+4915123456789"),
        ("+39 06 1234 5678", "+390612345678"),
        ("+33.6.12.34.56.78", "+33612345678"),
    ],
)
def test_every_spelling_of_a_number_has_one_e164_form(text: str, phone: str) -> None:
    assert parse_phone(text) == phone


@pytest.mark.parametrize(
    "text",
    [
        "",
        "+",
        "13800138000",
        "008613800138000",
        "+86",
        "+861380013800",
        "+86138001380001",
        "+999999999999",
        "+1202555012",
        "+1 202 555 0123 ext 5",
        "+12025550123;ext=5",
        "tel:+12025550123",
        "+1800FLOWERS",
        "+１２０２５５５０１２３",
        "+٨٦١٣٨٠٠١٣٨٠٠٠",
        "＋12025550123",
        "+12025550123\n",
        "+12025550123\x00",
        "++12025550123",
        "+1202555\u200b0123",
        "+1202555\ud8000123",
        "+" + "1" * 31,
        "+" + "(" * 31,
        "+" + "9" * 100_000,
    ],
    ids=lambda text: f"{text[:24]!a}",
)
def test_an_invalid_number_is_rejected_and_names_the_field(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_phone(text)
    assert refused.value.field == "phone"
    assert not re.search("[0-9]{4}", str(refused.value)), "the error does not contain the number"


@pytest.mark.parametrize("text", ["+19005550123", "+4909001234567", "+33899701234"])
def test_a_premium_rate_number_is_rejected(text: str) -> None:
    with pytest.raises(BadInput, match="of a type"):
        parse_phone(text)


@given(st.text(alphabet="+0123456789 ()-.;ext٣", max_size=40))
def test_any_text_is_a_number_or_rejected(text: str) -> None:
    try:
        phone = parse_phone(text)
    except BadInput:
        return
    assert re.fullmatch(r"\+[1-9][0-9]{6,14}", phone)
    assert parse_phone(phone) == phone


@pytest.mark.parametrize(
    ("phone", "countries", "types", "admitted"),
    [
        ("+12025550123", {"US"}, {"fixed_line_or_mobile"}, True),
        ("+12025550123", {"*"}, {"fixed_line_or_mobile"}, True),
        ("+12025550123", {"US"}, {"mobile"}, False),
        ("+12025550123", {"CA", "DE"}, {"fixed_line_or_mobile"}, False),
        ("+18765550123", {"US"}, {"fixed_line_or_mobile", "fixed_line", "mobile"}, False),
        ("+4915123456789", {"DE"}, {"mobile"}, True),
        ("+493012345678", {"DE"}, {"mobile"}, False),
        ("+493012345678", {"DE"}, {"fixed_line"}, True),
        ("+4915123456789", set(), {"mobile"}, False),
    ],
)
def test_codes_are_sent_only_to_the_configured_countries_and_types(
    phone: str, countries: set[str], types: set[str], admitted: bool
) -> None:
    assert parse_phone(phone) == phone
    if admitted:
        require_destination(phone, countries, types)
        return
    with pytest.raises(BadInput) as refused:
        require_destination(phone, countries, types)
    assert refused.value.field == "phone"
    assert not re.search("[0-9]{4}", str(refused.value)), "the error does not contain the number"
