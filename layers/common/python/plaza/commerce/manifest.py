"""The contexts of the wing ``commerce``: shops, flash sales and check-ins."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(
        name="shops",
        export="shops.export:SECTIONS",
        erase="shops.erasure:erase",
        compare=("shops.inspection:PLACES",),
        reviews="shops.reviewed",
        warm_targets=("shops.queries:warm_pages",),
    ),
    Context(
        name="flash_sales",
        export="flash_sales.export:SECTIONS",
        erase="flash_sales.erasure:erase",
        compare=("flash_sales.inspection:FILTER", "flash_sales.inspection:SALES"),
        may_review="flash_sales.mysql_orders:is_used",
        warm="flash_sales.recover_orders:warm_sales",
        maintains="flash_sales.archive_orders:run_archive",
        gauges=("flash_sales.gauges:read_orders",),
        commands="flash_sales.operator_commands",
        pushes=("flash_sales.outcomes:ORDERS", "flash_sales.outcomes:OFFERS"),
    ),
    Context(
        name="checkins",
        export="checkins.export:SECTIONS",
        erase="checkins.erasure:erase",
        remains="checkins.mysql_store:REMAINS",
        compare=("checkins.inspection:CHECK_INS",),
        sweeps=("checkins.sweep:SWEEP",),
        lag=("checkins.gauges:read_checkin_outboxes",),
    ),
    Context(
        name="changes",
        lag=("changes.gauges:read_binlog_lag",),
        commands="changes.operator_commands",
    ),
)
