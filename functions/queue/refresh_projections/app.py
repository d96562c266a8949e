"""Project announced writes to Redis as MySQL has them now."""

from plaza.content.refresh import REFRESHES

handler = REFRESHES.handler
