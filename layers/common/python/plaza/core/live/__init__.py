"""Live numbers: the totals that screens show and read again.

It owns no table and no queue. Keys: ``live:polls``, ``live:screens:<minute>``. The functions
TotalsApi and SampleGauges call it.
"""

from plaza.core.live.polls import count_poll
from plaza.core.live.read_totals import MAX_TARGETS, read_totals

__all__ = ["MAX_TARGETS", "count_poll", "read_totals"]
