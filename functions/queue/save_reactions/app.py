"""Reaction events become rows, log and counters."""

from plaza.reactions.saving import REACTIONS

handler = REACTIONS.handler
