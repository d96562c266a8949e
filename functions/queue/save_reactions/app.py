"""Store reaction events in MySQL: log, rows and counters."""

from plaza.reactions.persist import REACTIONS

handler = REACTIONS.handler
