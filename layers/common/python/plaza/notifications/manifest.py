"""The contexts of the wing ``notifications``: what is new for a user."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(name="notifications"),
    Context(name="push", export="push.export:SECTIONS"),
    Context(name="unread", export="unread.export:SECTIONS", expires=("unread.purge:EXPIRY",)),
)
