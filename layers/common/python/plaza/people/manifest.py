"""The contexts of the wing ``people``: users, sign-in, blocks and follows."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(name="users"),
    Context(name="auth", expires=("auth.expired_sessions:EXPIRY",)),
    Context(name="blocks"),
    Context(name="follows"),
)
