"""Mutants of the gate."""

from __future__ import annotations

from tests.mutants.mutant import mutants_of

GATE = "tests/integration/reactions/test_gate.py"

MUTANTS = [
    *mutants_of(
        "reactions/lua/gate.lua",
        [GATE],
        (
            "late",
            "if now > tonumber(ARGV[4]) then return {'LATE', now} end",
            "",
            "A command that arrives after its deadline writes nothing.",
        ),
        (
            "deleted",
            "if status == 'deleted' then return {'DELETED', now} end",
            "",
            "A deleted target refuses reactions.",
        ),
        (
            "hint-no-ttl",
            "redis.call('PEXPIRE', row_requests, ROW_REQUEST_TTL_MS)",
            "",
            "Row requests expire.",
        ),
    ),
]
