"""Posts, comments on posts, reviews of shops: written, read whole, listed, deleted by who wrote.

Other contexts use ``reading``, and ``queues`` for posts to be pushed.
"""

from plaza.content.content import (
    Draft,
    Listed,
    Place,
    Text,
    Whole,
    count_fitting,
    name_viewer,
)

__all__ = [
    "Draft",
    "Listed",
    "Place",
    "Text",
    "Whole",
    "count_fitting",
    "name_viewer",
    "queues",
    "reading",
]
