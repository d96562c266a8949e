"""Posts, comments on posts, reviews of shops: written, read whole, listed, deleted by who wrote."""

from plaza.content.content import Attempt, Draft, Place, Text, count_fitting, name_viewer
from plaza.content.publishing import publish_unsent
from plaza.content.queues import FANOUTS, FanOut
from plaza.content.reading import (
    Listed,
    Whole,
    forget_texts,
    list_comments,
    list_posts,
    list_reviews,
    read_one,
    read_posts,
    read_reviews,
    require_shop,
)
from plaza.content.refreshing import refresh
from plaza.content.writing import create, delete
from plaza.targets import REFRESHES

__all__ = [
    "FANOUTS",
    "REFRESHES",
    "Attempt",
    "Draft",
    "FanOut",
    "Listed",
    "Place",
    "Text",
    "Whole",
    "count_fitting",
    "create",
    "delete",
    "forget_texts",
    "list_comments",
    "list_posts",
    "list_reviews",
    "name_viewer",
    "publish_unsent",
    "read_one",
    "read_posts",
    "read_reviews",
    "refresh",
    "require_shop",
]
