"""All queues of the product, as its modules declare them."""

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaza.infra.queues.queue import Queue


@cache
def load_queues() -> "Mapping[str, Queue[Any]]":
    """Return name -> queue. Imports every module of plaza, so that each queue has its consumer."""
    import plaza
    from plaza.infra.queues.queue import declared

    for module in pkgutil.walk_packages(plaza.__path__, "plaza."):
        importlib.import_module(module.name)
    return declared()
