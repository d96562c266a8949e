"""Project announced writes to Redis as MySQL has them now."""

from plaza.content.refresh import REFRESHES, refresh

handler = REFRESHES.processor(refresh).lambda_handler()
