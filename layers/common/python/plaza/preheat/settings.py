"""The settings of Preheat."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.runtime.settings import declare


class PreheatSettings(NamedTuple):
    """``release``: the version of the layer, which changes with each deploy of other code."""

    release: str


preheat_settings = declare(PreheatSettings, release=lambda env: env.get("PLAZA_RELEASE", ""))
