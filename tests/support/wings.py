"""Deployments that leave wings out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from plaza.infra import contexts


@contextmanager
def without(*wings: str) -> Iterator[None]:
    """Leave out ``wings``; types of targets, which are read once, stay."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(contexts.WINGS_OFF, ",".join(wings))
        _forget()
        yield
    _forget()


def _forget() -> None:
    contexts.list_wings.cache_clear()
    contexts.list_contexts.cache_clear()
