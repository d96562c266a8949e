"""The use cases of tests/faults, prepared by one version and carried out by the other.

They cover every operation that writes, every consumer and every schedule; policy tests see to it.
"""

from __future__ import annotations

import re

from tests.faults.harness import Snapshot
from tests.faults.use_cases import READER, USE_CASES, UseCase, populate
from tests.support.routes import contract
from tests.versions.agreement import QUERIES, UNCOMPARED, compare_answers
from tests.versions.deployment import NEW, OLD, Deployment, Phase
from tests.versions.traffic import ADMIN

DIRECTIONS = ((OLD, NEW), (NEW, OLD))


def prepare(deployment: Deployment) -> Snapshot:
    """Populate empty stores by both versions. Returns all data."""
    deployment.phase = Phase("populate", (OLD, NEW), (OLD, NEW))
    deployment.empty()
    populate(deployment)
    return deployment.take_snapshot()


def list_use_cases(deployment: Deployment) -> list[UseCase]:
    """Return the use cases of what both versions have."""
    versions = deployment.versions.values()
    return [case for case in USE_CASES if all(version.knows(case.covers) for version in versions)]


def play_use_case(
    deployment: Deployment, case: UseCase, base: Snapshot, first: str, second: str
) -> list[str]:
    """Let ``first`` prepare a use case, ``second`` carry it out, and ``first`` answer what follows;
    then compare all reads. Returns the problems."""
    deployment.restore(base)
    deployment.phase = Phase(f"{case.name}, prepared by {first}", (first,), (first,))
    case.given(deployment)
    case.reset(deployment)
    deployment.problems.clear()  # of outages that the use case needs
    deployment.phase = Phase(f"{case.name} by {second} after {first}", (second,), (second,))
    case.act(deployment)
    deployment.phase = Phase(f"after {case.name} by {second}", (first,), (OLD, NEW))
    for ask in case.then:
        ask(deployment)
    deployment.compare_stores()
    deployment.reset_api()
    for path, methods in contract()["paths"].items():
        names = re.findall(r"\{(\w+)\}", path)
        if (
            "get" not in methods
            or path.startswith(UNCOMPARED)
            or not deployment.ids.keys() >= {*names}
        ):
            continue
        declared = methods["get"].get("parameters", ())
        taken = {p["name"] for p in declared if p["in"] == "query"}
        query = {name: value for name, value in QUERIES.items() if name in taken}
        compare_answers(
            deployment, f"GET {path}", ADMIN if path.startswith("/ops/") else READER, {}, query
        )
    return list(deployment.problems)
