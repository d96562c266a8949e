"""The order token of a total: its text, and the order of texts."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from plaza.core.reactions.at import encode, parse_order
from plaza.infra.http.schemas import ORDER_EXAMPLE

NUMBERS = st.tuples(*[st.integers(0, 2**53)] * 3)


@given(NUMBERS, NUMBERS)
def test_tokens_are_ordered_as_their_numbers(
    first: tuple[int, int, int], second: tuple[int, int, int]
) -> None:
    tokens = encode(*first), encode(*second)
    assert (tokens[0] < tokens[1], tokens[0] == tokens[1]) == (first < second, first == second)
    assert all(re.fullmatch(r"1[0-9A-Za-z_-]{27}", token) for token in tokens)


def test_bytes_of_a_token_stay() -> None:
    """Clients keep tokens across deploys, so a later version must write the same ones."""
    assert encode(2**40 + 57, 1_763_765_192_123_456, 3) == ORDER_EXAMPLE
    assert encode(0, 0, 0) == "1" + "-" * 27
    assert encode(2**54 - 1, 2**54 - 1, 2**54 - 1) == "1" + "z" * 27


def test_a_later_format_is_greater() -> None:
    assert str(encode(2**54 - 1, 2**54 - 1, 2**54 - 1)) < "2"


def test_what_a_script_replies_is_a_token() -> None:
    assert parse_order(5, "7", "3") == encode(5, 7, 3)
