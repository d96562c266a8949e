"""Several jobs in one scheduled run, none of which keeps the others from running."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plaza.infra.observability import error_fields, record


def run_jobs(jobs: Mapping[str, Callable[[], int]], turn: int) -> dict[str, int]:
    """Run all ``jobs``, a different one first each ``turn``; return what each returned.

    A run that ends early, because its time is over, ends in another job the next time. Raises the
    first error of a job, after all have run.
    """
    names = list(jobs)
    first = turn % len(names)
    results: dict[str, int] = {}
    errors: list[Exception] = []
    for name in names[first:] + names[:first]:
        try:
            results[name] = jobs[name]()
        except Exception as error:
            record("job_failed", job=name, **error_fields(error))
            errors.append(error)
    if errors:
        raise errors[0]
    return results
