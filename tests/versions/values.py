"""Which values in Redis one version wrote and the other one read, from the MONITOR of Redis.

Connections of a version have its name (CLIENT SETNAME). A value is one key; values are counted by
the shape of their keys, in which # is a number or a date.
"""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_LINE = re.compile(rb"[+\d.]+ \[\d+ (\S+)\] (.*)")
_ARGUMENT = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_REACTIONS = re.compile(r"(like|collect|follow):(post|comment|review|user):#:")
_NUMBER = re.compile(r"\d+|\d{4}-\d\d(-\d\d)?")
_TOKEN = re.compile(r"(?=.*[\dA-Z])[\w.-]{12,}")
_CHUNK_BYTES = 1 << 16


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Commands whose reply or effect depends on what is stored; not those that only measure a value,
# which the scan of all keys sends.
_READS = _words(
    "GET MGET GETRANGE GETBIT BITFIELD BITFIELD_RO BITCOUNT GETDEL GETEX EXISTS INCR INCRBY SETBIT"
    " HGET HMGET HGETALL HEXISTS HKEYS HVALS HINCRBY HSCAN HSETNX HDEL"
    " ZSCORE ZMSCORE ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZCOUNT ZRANK ZINCRBY ZADD"
    " ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZPOPMIN ZRANGEBYLEX ZSCAN GEOSEARCH GEOPOS"
    " SISMEMBER SMISMEMBER SMEMBERS SADD SREM SSCAN LRANGE LINDEX LPOP RPOP LTRIM"
    " PFCOUNT PFADD PFMERGE"
)
_WRITES = _words(
    "SET SETEX PSETEX MSET SETNX INCR INCRBY SETBIT BITFIELD APPEND SETRANGE HSET HMSET HSETNX"
    " HINCRBY HDEL ZADD ZINCRBY ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZPOPMIN GEOADD SADD SREM"
    " LPUSH RPUSH LPOP RPOP PFADD PFMERGE RENAME RESTORE"
)
_SEVERAL_KEYS = frozenset({"MGET", "EXISTS", "PFCOUNT", "PFMERGE", "DEL", "UNLINK"})
_ENDS = frozenset({"DEL", "UNLINK", "GETDEL", "FLUSHALL"})

UNSHARED = {
    r".*:(lease|lock|loading)": "held by one request, which alone ends it",
    r".*:sweep": "new in this version: the one before keeps its progress in meta",
    r".*:hold:(<token>|#)": "the reply to one request, for its own repeat",
    r".*:(next|build|part)": "a build, which begins and ends in one step here",
    r".*:filling": "a filter that is built in one step here; then it is bloom, which both read",
    r".*:rebuild": "the name of a run, which alone compares it",
    r"voucher:#:absent": "read only where the filter of vouchers is wrong",
    r"log_heads": "the version before has no such value",
    r"user:#:(older|unread)|shop:#:score|warm_up:run": "the version before has no such value",
    r"user:#:depth": "this version has no such value",
    r"session_mac:<token>": "the version before signs no sessions",
    r"live:(polls|screens:#)": "the version before counts no polls",
    r"hot:.*": "a sample; which command adds to it is chance",
    r"echo:.*": "a text message of a local stack",
}
"""Shapes of values that another version need not read, and the reason."""
MIN_WRITES = 3
"""Writes of a shape by a version after which the other one must have read one: fewer are chance."""


@dataclass
class Values:
    """``written``: shape -> version -> number of writes. ``crossed``: shape -> pairs (version that
    wrote a value, other version that read it afterwards)."""

    written: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    crossed: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))

    def find_missing(self, versions: Sequence[str]) -> dict[str, list[str]]:
        """Return the shapes of which a value of one of the versions was not read by another, with
        the crossings that are missing. A shape that a version hardly writes needs none from it."""
        missing = {}
        for shape, writers in sorted(self.written.items()):
            if any(re.fullmatch(pattern, shape) for pattern in UNSHARED):
                continue
            expected = [
                (writer, reader)
                for writer in versions
                for reader in versions
                if reader != writer and writers[writer] >= MIN_WRITES
            ]
            if lost := [f"{w} -> {r}" for w, r in expected if (w, r) not in self.crossed[shape]]:
                missing[shape] = lost
        return missing


def shape_of(key: str) -> str:
    """Return a key without its numbers, dates, tokens and hash tag, and without the kind of a
    reaction: their values are alike."""
    shape = ":".join(map(_shape_of_part, re.sub(r"^\{[^}]*\}:", "", key).split(":")))
    return _REACTIONS.sub("<reaction>:#:", shape)


def _shape_of_part(part: str) -> str:
    if _NUMBER.fullmatch(part):
        return "#"
    return "<token>" if _TOKEN.fullmatch(part) else part


class Monitor:
    """A connection that receives every command of a Redis."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._socket = socket.create_connection((parts.hostname, parts.port))
        self._chunks: list[bytes] = []
        self._socket.sendall(b"MONITOR\r\n")
        assert self._socket.recv(5) == b"+OK\r\n", "MONITOR is refused"
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def _receive(self) -> None:
        while chunk := self._socket.recv(_CHUNK_BYTES):
            self._chunks.append(chunk)

    def stop(self) -> list[bytes]:
        """Close the connection; return the lines."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        return b"".join(self._chunks).splitlines()


@contextmanager
def monitoring(url: str, result: Values) -> Iterator[None]:
    """Add to ``result`` what happens in the block at the Redis of ``url``, as a user who may
    MONITOR."""
    monitor = Monitor(url)
    try:
        yield
    finally:
        add_commands(result, monitor.stop())


def add_commands(result: Values, lines: Sequence[bytes]) -> None:
    """Read the lines of MONITOR in order. A command of a script counts for the script's client."""
    names: dict[bytes, str] = {}
    last_writers: dict[str, str] = {}
    client = b""
    for line in lines:
        if (matched := _LINE.fullmatch(line)) is None:
            continue
        if matched[1] != b"lua":
            client = matched[1]
        arguments = [part.decode(errors="replace") for part in _ARGUMENT.findall(matched[2])]
        command = arguments[0].upper()
        if command == "CLIENT" and arguments[1].upper() == "SETNAME":
            names[client] = arguments[2]
        elif command in _READS | _WRITES | _ENDS:
            _add(result, last_writers, names.get(client, ""), command, arguments[1:])


def _add(
    result: Values, last_writers: dict[str, str], version: str, command: str, arguments: list[str]
) -> None:
    if command == "FLUSHALL":
        last_writers.clear()
        return
    if command == "MSET":
        keys = arguments[::2]
    else:
        keys = arguments if command in _SEVERAL_KEYS else arguments[:1]
    is_set_once = command == "SET" and "NX" in map(str.upper, arguments[2:])
    for key in keys:
        writer = last_writers.get(key, "")
        if version and writer not in ("", version) and (command in _READS or is_set_once):
            result.crossed[shape_of(key)].add((writer, version))
        if command in _ENDS:
            last_writers.pop(key, None)
        elif command in _WRITES:
            last_writers[key] = version
            if version:
                result.written[shape_of(key)][version] += 1


def describe(missing: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a line for each shape of ``find_missing``."""
    return [f"{shape}: {', '.join(lost)}" for shape, lost in missing.items()]
