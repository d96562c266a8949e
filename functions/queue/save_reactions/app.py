"""Reaction events become rows, log and counters."""

from plaza.reactions import REACTIONS

handler = REACTIONS.handler
