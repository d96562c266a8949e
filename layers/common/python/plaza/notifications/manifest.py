"""The contexts of the wing ``notifications``: what is new for a user."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(name="notifications"),
    Context(
        name="push",
        export="push.export:SECTIONS",
        erase="push.erasure:erase",
        hide="push.erasure:hide",
        announces="push.announce",
        resends=("push.announce:resend",),
    ),
    Context(
        name="unread",
        export="unread.export:SECTIONS",
        erase="unread.erasure:erase",
        compare=(
            "unread.inspection:CACHED",
            "unread.inspection:COUNTERS",
            "unread.inspection:GROUPS",
        ),
        expires=("unread.purge:EXPIRY",),
        participates="unread.participant",
    ),
)
