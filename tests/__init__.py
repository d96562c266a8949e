"""Tests have a kind of reaction and types of targets that a deployment adds, besides its own."""

import os

os.environ["PLAZA_KINDS"] = '{"bookmark": {"targets": ["post", "comment", "review"]}}'
os.environ["PLAZA_TARGET_TYPES"] = (
    '{"article": {"create": "server"}, "clip": {"create": "first_reaction", "pattern": "[0-9]+"}}'
)
