"""The contexts of the wing ``operate``: what operators see and do."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(name="operations"),
    Context(name="reconciliation"),
    Context(name="operator_commands"),
    Context(name="accounts"),
    Context(name="warm_up"),
    Context(name="keyspace"),
)
