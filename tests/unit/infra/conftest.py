"""Settings for tests that serve requests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plaza.infra.runtime.process import reset_process
from tests.unit.infra.test_settings import GOOD, set_only


@pytest.fixture(scope="module")
def configured() -> Iterator[None]:
    """The settings of a function of the API."""
    with pytest.MonkeyPatch.context() as patch:
        set_only(patch, GOOD)
        reset_process()
        yield
    reset_process()
