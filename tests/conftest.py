"""How the tests are shared out when several processes run them (`make test`)."""

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling


class ByFile(LoadScopeScheduling):
    """A file stays in one process, and all that need the stack stay with the one that has it."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "stack" if file.startswith("tests/e2e/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """What xdist asks for a scheduler with."""
    return ByFile(config, log)
