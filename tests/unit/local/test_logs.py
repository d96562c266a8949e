"""Log lines are shown once each, however many there are."""

from typing import Any

import pytest

from local import logs


class FakeLogs:
    """Answers as MiniStack does: by time, at most PAGE at once, no token."""

    class exceptions:  # noqa: N801 - as in boto3
        class ResourceNotFoundException(Exception):
            pass

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.events = events

    def filter_log_events(self, **asked: Any) -> dict[str, Any]:
        if asked["logGroupName"] == "/aws/lambda/silent":
            raise self.exceptions.ResourceNotFoundException
        later = [e for e in self.events if e["timestamp"] >= asked["startTime"]]
        return {"events": later[: logs.PAGE]}


def event(at_ms: int, message: str) -> dict[str, Any]:
    return {"timestamp": at_ms, "logStreamName": "stream", "message": message}


def test_more_lines_than_one_answer_holds_are_all_read_once() -> None:
    events = [event(i // 7, f"line {i}") for i in range(2 * logs.PAGE + 5)]
    read = list(logs.read_events(FakeLogs(events), "/aws/lambda/chatty", 0))
    assert [e["message"] for e in read] == [e["message"] for e in events]


def test_frames_of_an_invocation_are_left_out() -> None:
    fake = FakeLogs([event(1, "START RequestId: 1 Version: 1"), event(1, "hello")])
    assert list(logs.read_lines(fake, {"Greeter": "chatty"}, 0)) == [(1, "Greeter", "hello")]


def test_a_function_that_never_ran_has_no_lines() -> None:
    assert list(logs.read_lines(FakeLogs([]), {"Silent": "silent"}, 0)) == []


def test_a_line_is_about_a_request_alone_or_among_others() -> None:
    assert logs.concerns({"request_id": "my-id-01"}, "my-id-01")
    assert logs.concerns({"request_ids": ["a", "my-id-01"]}, "my-id-01")
    assert not logs.concerns({"request_id": "my-id-012", "request_ids": ["my-id-0"]}, "my-id-01")
    assert not logs.concerns({"request_ids": "my-id-01 and more"}, "my-id-01")
    assert not logs.concerns({}, "my-id-01")


def test_of_the_requests_of_a_batch_only_the_one_is_shown() -> None:
    line = {"event": "batch_consumed", "request_ids": ["a", "b", "c"], "_aws": {}, "function": "f"}
    assert logs.shorten(line, "b") == {
        "event": "batch_consumed",
        "request_ids": ["b", "and 2 more"],
    }
    assert logs.shorten({"request_ids": ["b"]}, "b") == {"request_ids": ["b"]}


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", "7", "[" * 100_000])
def test_what_is_no_line_of_ours_is_passed_over(text: str) -> None:
    assert logs.read_line(text) is None
