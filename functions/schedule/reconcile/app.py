"""Once a night everything is compared with everything; a run that has not ended goes on."""

from plaza.reconciliation.orchestrator import start


def handler(event: object, context: object) -> dict[str, int]:
    """Begin a run, or go on with the one there is."""
    return {"run": start()}
