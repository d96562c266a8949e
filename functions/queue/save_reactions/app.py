"""Store reaction events in MySQL: log, rows and counters."""

from plaza.core.reactions.persist import REACTIONS, save

handler = REACTIONS.processor(save).lambda_handler()
