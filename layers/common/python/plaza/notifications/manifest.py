"""The contexts of the wing ``notifications``: what is new for a user."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(name="notifications"),
    Context(name="push"),
    Context(name="unread", expires=("unread.purge:EXPIRY",)),
)
