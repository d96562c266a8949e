"""The contexts of the wing ``operate``: what operators see and do."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(
        name="operations",
        expires=("operations.gauges:EXPIRY",),
        gauges=("operations.queue_admin:read_depth_gauges",),
        commands="operations.operator_commands",
    ),
    Context(
        name="reconciliation",
        gauges=(
            "reconciliation.gauges:audit_active",
            "reconciliation.gauges:read_newest_run",
            "reconciliation.cycles:read_progress",
        ),
    ),
    Context(name="operator_commands", commands="operator_commands.operator_commands"),
    Context(name="accounts", commands="accounts.operator_commands"),
    Context(
        name="warm_up",
        recovers=("warm_up.start_warm_up:RECOVERY",),
        commands="warm_up.operator_commands",
    ),
    Context(name="keyspace"),
)
