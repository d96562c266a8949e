"""The contexts of the wing ``social``: posts, comments, reviews, feeds and rankings."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(name="content", export="content.export:SECTIONS"),
    Context(name="feed", export="feed.export:SECTIONS"),
    Context(name="moderation", export="moderation.export:SECTIONS"),
    Context(
        name="recommendations",
        warm="recommendations.post_rankings:warm_rankings",
        warm_targets=("recommendations.recommend:warm_lists",),
    ),
)
