"""The settings of WarmUp."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.runtime.settings import declare


class WarmUpSettings(NamedTuple):
    """``release``: the version of the layer, which changes with each deploy of other code."""

    release: str


warm_up_settings = declare(WarmUpSettings, release=lambda env: env.get("PLAZA_RELEASE", ""))
