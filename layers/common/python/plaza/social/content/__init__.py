"""Posts, comments on posts and reviews of shops: create, read, list, edit, hide, delete.

Other contexts use ``queries``, ``queues`` for the fan-out of posts, operators ``import_texts``.
"""

from plaza.social.content.model import (
    ContentPage,
    ContentView,
    Draft,
    ListCursor,
    Text,
    count_fitting,
)

__all__ = [
    "ContentPage",
    "ContentView",
    "Draft",
    "ListCursor",
    "Text",
    "commands",
    "count_fitting",
    "import_texts",
    "inspection",
    "queries",
    "queues",
]
