"""The settings of the feed."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.runtime.settings import declare


class FeedSettings(NamedTuple):
    """``fan_out_limit``: followers of an author, above which posts are pulled instead of pushed."""

    fan_out_limit: int = 10_000


feed_settings = declare(FeedSettings)
