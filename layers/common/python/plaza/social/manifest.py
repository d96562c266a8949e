"""The contexts of the wing ``social``: posts, comments, reviews, feeds and rankings."""

from plaza.infra.contexts import Context

CONTEXTS = (
    Context(
        name="content",
        export="content.export:SECTIONS",
        erase="content.erasure:erase",
        hide="content.erasure:hide",
        show="content.erasure:show",
        remains="content.mysql_store:REMAINS",
        canary="content.canary:make_post",
        listed="content.listed_texts",
        refreshes="content.refresh:refresh_texts",
        compare=("content.inspection:SHOP_REVIEWS",),
        counts=("content.mysql_counted:COUNTED",),
        types=(
            "content.mysql_targets:POST",
            "content.mysql_targets:COMMENT",
            "content.mysql_targets:REVIEW",
        ),
        recounts=("content.mysql_recounts:COMMENTS", "content.mysql_recounts:POSTS"),
        notified=("content.mysql_notified",),
    ),
    Context(name="shop_scores", review_totals="shop_scores.totals"),
    Context(
        name="feed",
        export="feed.export:SECTIONS",
        erase="feed.erasure:erase",
        follows="feed.apply_follows:apply_follow_changes",
        compare=("feed.inspection:INBOXES", "feed.inspection:CELEBRITY_POSTS"),
    ),
    Context(
        name="moderation",
        export="moderation.export:SECTIONS",
        erase="moderation.erasure:erase",
        pushes=("moderation.reports:REPORTS",),
    ),
    Context(
        name="recommendations",
        compare=("recommendations.inspection:POST_HOURS", "recommendations.inspection:REVIEWS"),
        warm="recommendations.post_rankings:warm_rankings",
        warm_targets=("recommendations.recommend:warm_lists",),
    ),
)
