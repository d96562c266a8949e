"""The contexts of the wing ``people``: users, sign-in, blocks and follows."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(
        name="users",
        export="users.export:SECTIONS",
        erase="users.erasure:erase",
        remains="users.mysql_users:REMAINS",
        commands="users.operator_commands",
        types=("users.mysql_targets:USER",),
        refreshes="users.cards:refresh_users",
    ),
    Context(
        name="auth",
        export="auth.export:SECTIONS",
        expires=("auth.expired_sessions:EXPIRY",),
        commands="auth.operator_commands",
    ),
    Context(
        name="blocks",
        export="blocks.export:SECTIONS",
        erase="blocks.erasure:erase",
        refreshes="blocks.block_user:repair",
    ),
    Context(name="follows"),
)
