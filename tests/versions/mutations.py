"""Incompatible changes of the baseline, each of which breaks a rule for neighbouring versions; the
harness must find them. They change the commit that ``baseline.txt`` names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.versions.rollout import Step
from tests.versions.traffic import Traffic

_PLAZA = "layers/common/python/plaza"
_META = ("commits.inc.lua", "gate.lua", "inspect_target.lua", "meta.inc.lua")
_REACT = (Traffic.react,) * 6


class Mutation(NamedTuple):
    """Replaced texts by file, the traffic that finds it soonest, and a part of a problem that it
    causes. ``added``: new files; ``undo``: statements that undo their migrations."""

    changes: Mapping[str, Mapping[str, str]]
    steps: Sequence[Step]
    problem: str
    added: Mapping[str, str] = {}
    undo: Sequence[str] = ()


MUTATIONS: Mapping[str, Mutation] = {
    "one more counter of users": Mutation(
        {
            f"{_PLAZA}/counters/model.py": {
                '    "collects_received_total",\n)': '    "collects_received_total",\n'
                '    "reposts_total",\n)',
                "    collects_received_total: int = 0\n": "    collects_received_total: int = 0\n"
                "    reposts_total: int = 0\n",
            }
        },
        (*_REACT, Traffic.read_profiles, Traffic.read_profiles),
        "unexpected keyword argument 'reposts_total'",
        {
            f"{_PLAZA}/migrations/9000_reposts.sql": "ALTER TABLE user_counter"
            " ADD COLUMN reposts_total BIGINT NOT NULL DEFAULT 0;\n"
        },
        (
            "ALTER TABLE user_counter DROP COLUMN reposts_total",
            "DELETE FROM schema_migration WHERE name = '9000_reposts'",
        ),
    ),
    "a total of users left out": Mutation(
        {
            f"{_PLAZA}/counters/model.py": {
                "return _JSON % self": "found = self._asdict()\n"
                '        del found["likes_received_total"]\n'
                "        return json.dumps(found)"
            }
        },
        (*_REACT, Traffic.read_profiles, Traffic.read_profiles),
        "likes_received is 0, not",
    ),
    "a renamed field of a message": Mutation(
        {
            f"{_PLAZA}/reactions/model.py": {
                '"actor_id": self.key.actor_id': '"actor": self.key.actor_id',
                'read(fields, "actor_id", ID)': 'read(fields, "actor", ID)',
            }
        },
        _REACT,
        "dead-lettered",
    ),
    "a mandatory field of a message": Mutation(
        {
            f"{_PLAZA}/flash_sales/model.py": {
                '"generation": self.generation,\n': '"generation": self.generation,\n'
                '                "channel": 1,\n',
                "        fields = messages.read_object(body)\n        return cls(\n"
                '            read(fields, "order_id", ID)': "        fields ="
                ' messages.read_object(body)\n        read(fields, "channel", ID)\n'
                '        return cls(\n            read(fields, "order_id", ID)',
            }
        },
        (Traffic.order,) * 4,
        "dead-lettered",
    ),
    "another shape of cursors": Mutation(
        {
            f"{_PLAZA}/infra/api.py": {
                "raw = json.dumps(parts,": "raw = json.dumps([0, *parts],",
                "        parts = json.loads(raw)\n": "        parts = json.loads(raw)[1:]\n",
            }
        },
        (Traffic.read_feed, Traffic.write_comment, Traffic.write_comment, *_REACT),
        "was not returned by this API",
    ),
    "a renamed field of meta": Mutation(
        {f"{_PLAZA}/reactions/lua/{name}": {"'base'": "'counter'"} for name in _META},
        _REACT,
        "PUT /",
    ),
    "one more part of a card": Mutation(
        {
            f"{_PLAZA}/users/model.py": {
                "[self.nickname, self.avatar]": "[self.nickname, self.avatar, 1]",
                "*json.loads(text))": "*json.loads(text)[:2])",
            }
        },
        (Traffic.write_post, Traffic.rename, Traffic.read_profiles),
        "positional arguments but 5 were given",
    ),
    "a renamed field of an answer": Mutation(
        {"functions/api/reactions/app.py": {"likes=outcome.total": "like_total=outcome.total"}},
        _REACT,
        '"likes": null',
    ),
}
