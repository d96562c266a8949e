"""Posts, comments on posts, reviews of shops: written, read whole, listed, deleted by who wrote.

Other contexts use ``queries``, and ``queues`` for posts to be pushed.
"""

from plaza.content.model import (
    ContentPage,
    ContentView,
    Draft,
    ListPosition,
    Text,
    count_fitting,
    hash_viewer,
)

__all__ = [
    "ContentPage",
    "ContentView",
    "Draft",
    "ListPosition",
    "Text",
    "count_fitting",
    "hash_viewer",
    "queries",
    "queues",
]
