"""Posts, comments on posts and reviews of shops: create, read, list, edit, hide, delete.

Other contexts use ``queries``, its types in ``model``, ``queues`` for the fan-out of posts,
operators ``import_texts``. A consumer of likes loads this package for ``mysql_targets``: it imports
nothing.
"""

__all__ = [
    "commands",
    "import_texts",
    "inspection",
    "model",
    "queries",
    "queues",
]
