"""The sections of all contexts, in the order of an export. A new one may stand anywhere: cursors
have the names."""

from __future__ import annotations

from plaza.auth import export as auth_export
from plaza.blocks import export as blocks_export
from plaza.checkins import export as checkins_export
from plaza.content import export as content_export
from plaza.counters import export as counters_export
from plaza.feed import export as feed_export
from plaza.flash_sales import export as sales_export
from plaza.idempotency import export as idempotency_export
from plaza.moderation import export as moderation_export
from plaza.push import export as push_export
from plaza.reactions import export as reactions_export
from plaza.shops import export as shops_export
from plaza.targets import export as targets_export
from plaza.unread import export as unread_export
from plaza.users import export as users_export

SECTIONS = (
    *users_export.SECTIONS,
    *counters_export.SECTIONS,
    *auth_export.SECTIONS,
    *idempotency_export.SECTIONS,
    *content_export.SECTIONS,
    *targets_export.SECTIONS,
    *reactions_export.SECTIONS,
    *blocks_export.SECTIONS,
    *unread_export.SECTIONS,
    *push_export.SECTIONS,
    *moderation_export.SECTIONS,
    *feed_export.SECTIONS,
    *sales_export.SECTIONS,
    *checkins_export.SECTIONS,
    *shops_export.SECTIONS,
)
