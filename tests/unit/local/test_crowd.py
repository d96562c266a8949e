"""The load driver: who acts when, what is counted, and the parts of a response."""

import asyncio
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from resource import RLIM_INFINITY

import pytest

from cli.paths import ROOT, CommandError
from local.load import crowd
from local.load.crowd import (
    Client,
    InFlight,
    Tally,
    parse_answer,
    require_connections,
)


def test_error_of_a_member_ends_the_crowd() -> None:
    async def use() -> None:
        async with Client("http://127.0.0.1:1", {}, 3) as client:

            async def act(member: int) -> None:
                await asyncio.sleep(0)
                raise CommandError(f"no {member}")

            with pytest.raises(CommandError, match="no 0"):
                await client.play(range(9), act)

    asyncio.run(use())


@pytest.mark.parametrize(
    ("files", "ports", "refused", "soft"),
    [
        ((1_024, 5_000), "32768 60999", "4,801 connections: the limit of open files .* 4,800", 0),
        ((1_024, RLIM_INFINITY), "1 4801", "the limit of ports .* allows 4,800", 0),
        ((1_024, 5_001), "32768 60999", "", 5_001),
        ((1_024, RLIM_INFINITY), "32768 60999", "", 5_001),
        ((RLIM_INFINITY, RLIM_INFINITY), "32768 60999", "", 0),
        ((8_000, 9_000), "32768 60999", "", 0),
    ],
)
def test_connections_are_limited_by_files_and_ports(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    files: tuple[int, int],
    ports: str,
    refused: str,
    soft: int,
) -> None:
    """``soft``: the new soft limit, 0 if it stays."""
    new: list[int] = []
    monkeypatch.setattr("local.load.crowd.resource.getrlimit", lambda _: files)
    monkeypatch.setattr(
        "local.load.crowd.resource.setrlimit", lambda _, limits: new.append(limits[0])
    )
    (tmp_path / "ports").write_text(ports)
    monkeypatch.setattr(crowd, "_PORTS", tmp_path / "ports")
    with pytest.raises(CommandError, match=refused) if refused else nullcontext():
        require_connections(4_801)
    assert sum(new) == soft


def test_mean_in_flight_is_weighted_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = iter([0.0, 0.0, 1.0, 3.0, 4.0])
    monkeypatch.setattr("local.load.crowd.time.monotonic", lambda: next(now_s))
    gauge = InFlight()
    for change in (2, 4, -6):  # 2 for a second, 6 for two, none for one
        gauge.add(change)
    assert (gauge.mean, gauge.max) == (3.5, 6)


@pytest.mark.parametrize("end", range(1, 60))
def test_response_in_parts_is_not_read_before_its_end(end: int) -> None:
    whole = b'HTTP/1.1 200 OK\r\nContent-Length: 11\r\nRetry-After: 2\r\n\r\n{"id": "7"}'
    assert parse_answer(whole[:end]) is None
    answer = parse_answer(whole)
    assert answer is not None
    assert (answer.status, answer.body, answer.retry_after_s) == (200, {"id": "7"}, 2.0)


@pytest.mark.parametrize("text", ["", "soon", "-1", "1.5"])
def test_delay_that_is_no_number_is_none(text: str) -> None:
    assert crowd.Answer(503, {}, {"retry-after": text}).retry_after_s == 0
    assert crowd.Answer(503, {}, {"retry-after": "3600"}).retry_after_s == crowd.MAX_WAIT_S


def test_longest_gaps_between_answers_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    tally, now_s = Tally(), iter([10.0, 12.0, 13.0, 20.0])
    monkeypatch.setattr("local.load.crowd.time.monotonic", lambda: next(now_s))
    for status in (200, 202, 503, 200):
        tally.record_try(status, 0.1)
    assert tally.gaps_s == {"200": 10.0, "good": 8.0}
    assert tally.statuses == {200: 2, 202: 1, 503: 1}


def test_refused_and_unanswered_requests_are_errors() -> None:
    load = Tally(sent=15)
    load.statuses.update({200: 3, 404: 5, 429: 1, 503: 2})
    assert load.errors == 7


def test_processes_share_the_requests_and_skip_their_first() -> None:
    """It forks, so it runs in a process without threads."""
    script = """
from local.load.crowd import play_in_processes
requests = [lambda n=n: n % 5 != 4 for n in range(20)]
tally, contexts = play_in_processes(requests, workers=2)
assert tally.statuses == {200: 14, 500: 4}, tally
assert (len(tally.latencies_s), tally.errors, tally.sent) == (14, 4, 18), tally
assert contexts == [None, None], contexts
"""
    completed = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr
