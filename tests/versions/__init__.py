"""Two versions of Plaza on one Redis, one MySQL and one set of queues, as a deploy runs them.

``trees`` names the checkouts: an earlier commit, this working tree, a mutated copy of it.
``process`` runs the functions of one checkout; ``deployment`` sends requests, batches and schedules
to the processes of both; ``traffic`` is what clients do, with the expected answers; ``rollout``
plays the phases of a deploy and of a rollback; ``agreement`` compares the answers of both versions;
``values`` finds which values in Redis one version wrote and the other read; ``use_cases`` plays
the use cases of tests/faults; ``mutations`` lists incompatible changes that the harness must find.

``baseline.txt`` names the earlier commit.
"""

SUSPENDED = (
    "Compatibility between versions is suspended while 0.4.0 is in work: schema, keys, messages and"
    " layout may break in place. The last commit of that time becomes the baseline; from it on, the"
    " version before and after can read what one version writes."
)
"""Why ``make versions`` and its tests are off; empty: they are on."""
