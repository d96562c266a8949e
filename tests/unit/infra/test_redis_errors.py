"""The table of Redis's errors, by the replies that redis-py parses."""

from __future__ import annotations

import pytest
from redis._parsers.hiredis import _HiredisParser
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import SlotNotCoveredError

from plaza.infra.redis import errors
from plaza.infra.redis.errors import MEANINGS, ReplyMeaning

OUTAGES = (
    "LOADING Redis is loading the dataset in memory",
    "READONLY You can't write against a read only replica.",
    "READONLY You can't write against a read only replica. script: 1, on @user_script:1.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "CLUSTERDOWN The cluster is down",
    "CLUSTERDOWN Hash slot not served",
    "TRYAGAIN Multiple keys request during rehashing of slot",
    "MOVED 3999 127.0.0.1:6381",
    "ASK 3999 127.0.0.1:6381",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist",
    "NOREPLICAS Not enough good replicas to write.",
    "NOAUTH Authentication required.",
    "WRONGPASS invalid username-password pair or user is disabled.",
    "ERR max number of clients reached",
)
BUGS = (
    "ERR unknown command 'FOO', with args beginning with: ",
    "WRONGTYPE Operation against a key holding the wrong kind of value",
    "NOPERM User plaza has no permissions to run the 'keys' command",
    "CROSSSLOT Keys in request don't hash to the same slot",
    "NOSCRIPT No matching script.",
    "BUSYKEY Target key name already exists.",
)


def parse(reply: str) -> Exception:
    error: Exception = _HiredisParser.parse_error(reply)  # type: ignore[no-untyped-call]
    return error


@pytest.mark.parametrize("reply", OUTAGES)
def test_a_redis_that_cannot_work_is_an_outage(reply: str) -> None:
    assert errors.is_outage(parse(reply))


@pytest.mark.parametrize("reply", BUGS)
def test_any_other_reply_is_a_bug(reply: str) -> None:
    assert not errors.is_outage(parse(reply))


@pytest.mark.parametrize(
    ("meaning", "first_words"),
    [
        (ReplyMeaning.DEMOTED, {"READONLY"}),
        (ReplyMeaning.STALE, {"READONLY"}),
        (ReplyMeaning.RESENT, {"MOVED", "LOADING", "NOAUTH", "WRONGPASS", "ERR"}),
        (
            ReplyMeaning.TOPOLOGY,
            {"MOVED", "LOADING", "NOAUTH", "WRONGPASS", "ERR", "CLUSTERDOWN", "MASTERDOWN"},
        ),
    ],
)
def test_replies_have_the_meanings_of_the_table(
    meaning: ReplyMeaning, first_words: set[str]
) -> None:
    classes = errors.classes_of(meaning)
    with_meaning = {reply.split()[0] for reply in OUTAGES if isinstance(parse(reply), classes)}
    assert with_meaning == first_words


def test_each_row_of_the_table_is_a_reply_or_has_no_reply() -> None:
    parsed = [parse(reply) for reply in OUTAGES]
    by_class = {
        name
        for name in MEANINGS
        for error in parsed
        if isinstance(name, type) and isinstance(error, name)
    }
    by_word = {reply.split()[0] for reply in OUTAGES} & set(MEANINGS)
    without = {"TimeoutError", "RedisClusterException", "SlotNotCoveredError"}  # of the client
    unused = set(MEANINGS) - by_class - by_word
    assert {getattr(name, "__name__", name) for name in unused} == without
    assert issubclass(SlotNotCoveredError, errors.classes_of(ReplyMeaning.STALE))
    assert errors.is_outage(RedisConnectionError("closed"))
