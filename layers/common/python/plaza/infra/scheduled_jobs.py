"""Several jobs in one scheduled run; a failed job does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from plaza.infra.observability import error_fields, record


def run_jobs(jobs: Mapping[str, Callable[[], int]], run: int) -> dict[str, int]:
    """Run all ``jobs``; return name -> result. Raises the first error after all have run.
    Each ``run``, a number, begins with another job, so that timeouts cut off different jobs."""
    names = list(jobs)
    first = run % len(names)
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
