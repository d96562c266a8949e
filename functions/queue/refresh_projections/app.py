"""What was announced before it was written is told to Redis, as MySQL has it by now."""

from plaza.content.refresh import REFRESHES

handler = REFRESHES.handler
