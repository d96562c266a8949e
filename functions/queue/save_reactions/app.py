"""Reaction events become rows, log and counters."""

from plaza.reactions.persist import REACTIONS

handler = REACTIONS.handler
