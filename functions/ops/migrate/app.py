"""Apply the migrations that this code expects, and check its kinds. A deploy invokes it first."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core.reactions import declared_kinds
from plaza.infra.aws import custom_resource
from plaza.infra.mysql.migrations import apply_migrations
from plaza.infra.runtime.observability import logger, metrics, record


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Apply the migrations that are missing. Fails for a kind with reactions that is missing."""
    return custom_resource.serve(event, _migrate)


def _migrate() -> dict[str, Any]:
    applied = apply_migrations()
    declared_kinds.require_declared()
    record("migrations_applied", applied=applied)
    return {"applied": applied}
