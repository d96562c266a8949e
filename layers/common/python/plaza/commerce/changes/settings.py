"""Settings of the changes that bypass the API."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.runtime.settings import declare


class ChangeSettings(NamedTuple):
    """``follows_binlog``: whether changes by SQL are read from the binlog, which is off else."""

    follows_binlog: bool  # PLAZA_BINLOG is followed


change_settings = declare(
    ChangeSettings, follows_binlog=lambda env: env.get("PLAZA_BINLOG") == "followed"
)
