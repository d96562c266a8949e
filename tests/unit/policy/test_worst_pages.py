"""Each GET route has a case in ``python -m bench pages``: its worst honest input on large data."""

from __future__ import annotations

import json

from bench.pages import CASES, build_event
from cli.paths import CONTRACT
from tests.unit.policy.template import folder_of, routes

OPERATIONS = {
    f"GET {path}": item["get"]
    for path, item in json.loads(CONTRACT.read_text())["paths"].items()
    if "get" in item
}
ROUTES = routes()


def test_each_get_route_has_a_case() -> None:
    assert sorted(CASES) == sorted(OPERATIONS), "bench/pages.py has a case for each GET route"


def test_a_case_has_only_parameters_of_its_route_and_the_longest_page() -> None:
    for route, case in CASES.items():
        declared = {p["name"]: p for p in OPERATIONS[route].get("parameters", [])}
        moved = set(case.moved(1)) if case.moved else set()
        assert {*case.query, *case.parameters, *moved} <= set(declared), route
        path = {name for name, p in declared.items() if p["in"] == "path"}
        assert path == set(case.parameters), route
        if "limit" in declared and "limit" not in case.query:
            raise AssertionError(f"{route}: the case has no limit")


def test_a_case_names_the_function_that_serves_its_route() -> None:
    for route, case in CASES.items():
        served_by = ROUTES["GET", route.removeprefix("GET ")]
        assert folder_of(served_by).name == case.function, route


def test_a_moved_case_asks_for_another_page_each_time() -> None:
    for route, case in CASES.items():
        if case.moved:
            events = [build_event(route, case, number) for number in range(500)]
            assert len({event["rawQueryString"] for event in events}) == len(events), route
