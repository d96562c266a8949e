"""Parse and check phone numbers. No I/O."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from phonenumbers import (
    NumberParseException,
    PhoneNumberFormat,
    PhoneNumberType,
    format_number,
    is_valid_number,
    number_type,
    parse,
    region_code_for_number,
)

from plaza.infra.runtime.errors import BadInput

# The library would also accept letters, extensions and digits of other scripts.
PHONE_PATTERN = r"^\+[0-9 ().-]{6,31}$"
_PHONE_PATTERN = re.compile(PHONE_PATTERN)
_COSTLY = (PhoneNumberType.PREMIUM_RATE, PhoneNumberType.SHARED_COST)


def parse_phone(text: str) -> str:
    """Return the number in ``text`` as E.164, such as +8613800138000.

    Raises BadInput, also for premium-rate and shared-cost numbers.
    """
    try:
        number = parse(text if _PHONE_PATTERN.fullmatch(text) else "")
    except NumberParseException:
        detail = "must be a phone number with + and its country code"
        raise BadInput("phone", detail, code="wrong-form") from None
    if not is_valid_number(number):
        raise BadInput("phone", "is not assigned in its country", code="unassigned")
    if number_type(number) in _COSTLY:
        raise BadInput("phone", "is of a type that no codes are sent to", code="not-served")
    return format_number(number, PhoneNumberFormat.E164)


def require_destination(
    phone: str, countries: AbstractSet[str], number_types: AbstractSet[str]
) -> None:
    """Raise BadInput unless codes are sent to the country and the type of ``phone`` (E.164).

    ``countries`` are ISO 3166 codes, ``*`` for all; ``number_types`` are names such as ``mobile``.
    """
    number = parse(phone)
    if "*" not in countries and region_code_for_number(number) not in countries:
        raise BadInput("phone", "is of a country that no codes are sent to", code="not-served")
    if PhoneNumberType.to_string(number_type(number)).lower() not in number_types:
        raise BadInput("phone", "is of a type that no codes are sent to", code="not-served")
