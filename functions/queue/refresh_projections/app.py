"""Project announced writes to Redis as MySQL has them now."""

from plaza.social.content.refresh import REFRESHES, refresh

handler = REFRESHES.processor(refresh).lambda_handler()
