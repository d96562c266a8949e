"""The contexts of the wing ``core``: likes, counters, targets, logs and switches."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(
        name="reactions",
        export="reactions.export:SECTIONS",
        erase="reactions.erasure:erase",
        remains="reactions.mysql_rows:REMAINS",
        compare=(
            "reactions.comparisons:TARGETS",
            "reactions.comparisons:USERS",
            "reactions.comparisons:STATES",
            "reactions.comparisons:FILTERS",
            "reactions.comparisons:LISTS",
        ),
        sweeps=("reactions.sweep:SWEEP",),
        recovers=("reactions.failover_recovery:RECOVERY",),
        lag=("reactions.gauges:read_outboxes",),
        gauges=("reactions.gauges:read_saved",),
        commands="reactions.operator_commands",
    ),
    Context(
        name="counters", export="counters.export:SECTIONS", remains="counters.mysql_store:REMAINS"
    ),
    Context(
        name="targets",
        export="targets.export:SECTIONS",
        refreshes="targets.refresh:refresh_external",
    ),
    Context(name="reaction_log", maintains="reaction_log.maintenance:run_maintenance"),
    Context(
        name="event_log",
        maintains="event_log.archive_events:run_archive",
        expires=("event_log.read_events:EXPIRY",),
    ),
    Context(name="switches", commands="switches.operator_commands"),
    Context(
        name="idempotency",
        export="idempotency.export:SECTIONS",
        erase="idempotency.erasure:erase",
        expires=("idempotency.mysql_expiry:EXPIRY",),
    ),
    Context(name="live", gauges=("live.polls:read_screens",)),
    Context(name="reach"),
)
