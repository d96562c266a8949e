"""How the tests are shared out when several processes run them (`make test`)."""

from collections.abc import Generator
from pathlib import Path

import pytest

END_TO_END = Path(__file__).with_name("e2e")


@pytest.hookimpl(wrapper=True)  # before xdist looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """A file stays in one process, and all that need the stack stay with the one that has it."""
    for item in items:
        of_stack = END_TO_END in item.path.parents
        item.add_marker(pytest.mark.xdist_group("stack" if of_stack else item.path.stem))
    return (yield)
