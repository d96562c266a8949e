"""Read the keys of the issuers of ID tokens, every five minutes, outside of the VPC."""

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.people.auth.refresh_issuers import refresh_issuers


@scheduled("refresh_issuers", is_in_network=False)
def handler(event: object, context: object) -> dict[str, int]:
    """Run once; return the number of issuers and keys, and of issuers that did not answer."""
    return refresh_issuers()
