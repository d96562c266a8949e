"""Benchmarks: each figure beside a limit or a peer that the same run measured.

They have a type of targets of the app, besides Plaza's own.
"""

import os

from cli.paths import add_layer_to_path

add_layer_to_path()
os.environ.setdefault("PLAZA_TARGET_TYPES", '{"clip": {"create": "first_reaction"}}')

NAMES = (
    "gate", "layouts", "flash-sales", "handler", "round-trips", "consumer", "feed", "reads",
    "shops", "scripts", "reconcile", "reaction-log", "cold-start", "layer", "field", "hot-keys",
    "powertools", "migrations", "page-reads", "pages", "attacks", "event-log",
)  # fmt: skip
