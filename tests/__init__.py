"""Tests have a kind of reaction that a deployment adds, besides the built-in ones."""

import os

os.environ["PLAZA_KINDS"] = '{"bookmark": {"targets": ["post", "comment", "review"]}}'
