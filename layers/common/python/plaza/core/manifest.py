"""The contexts of the wing ``core``: likes, counters, targets, logs and switches."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(name="reactions"),
    Context(name="counters"),
    Context(name="targets"),
    Context(name="reaction_log"),
    Context(name="event_log"),
    Context(name="switches"),
    Context(name="idempotency"),
    Context(name="live"),
    Context(name="reach"),
)
