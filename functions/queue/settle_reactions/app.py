"""Settles that failed when their batch was saved are done again."""

from plaza.reactions.saving import SETTLEMENTS

handler = SETTLEMENTS.handler
