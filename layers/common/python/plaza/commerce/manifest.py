"""The contexts of the wing ``commerce``: shops, flash sales and check-ins."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(name="shops"),
    Context(name="flash_sales"),
    Context(name="checkins"),
    Context(name="changes"),
)
