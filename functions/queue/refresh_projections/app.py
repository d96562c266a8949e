"""Project announced writes to Redis as MySQL has them now."""

from plaza.core.targets.refresh import REFRESHES, refresh

handler = REFRESHES.processor(refresh).lambda_handler()
