"""The contexts of the wing ``notifications``: what is new for a user."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(
        name="notifications",
        export="notifications.export:SECTIONS",
        erase="notifications.erasure:erase",
        compare=(
            "notifications.inspection:CACHED",
            "notifications.inspection:COUNTERS",
            "notifications.inspection:GROUPS",
        ),
        expires=("notifications.purge:EXPIRY",),
        participates="notifications.participant",
    ),
    Context(
        name="push",
        export="push.export:SECTIONS",
        erase="push.erasure:erase",
        hide="push.erasure:hide",
        announces="push.announce",
        resends=("push.announce:resend",),
    ),
)
