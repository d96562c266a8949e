"""The sections of all contexts, in the order of an export. A new one may stand anywhere: cursors
have the names."""

from __future__ import annotations

from plaza.commerce.checkins import export as checkins_export
from plaza.commerce.flash_sales import export as sales_export
from plaza.commerce.shops import export as shops_export
from plaza.core.counters import export as counters_export
from plaza.core.idempotency import export as idempotency_export
from plaza.core.reactions import export as reactions_export
from plaza.core.targets import export as targets_export
from plaza.notifications.push import export as push_export
from plaza.notifications.unread import export as unread_export
from plaza.people.auth import export as auth_export
from plaza.people.blocks import export as blocks_export
from plaza.people.users import export as users_export
from plaza.social.content import export as content_export
from plaza.social.feed import export as feed_export
from plaza.social.moderation import export as moderation_export

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
