"""Add posts of newly followed authors to inboxes; remove posts of unfollowed ones."""

from plaza.social.feed.apply_follows import FOLLOWS, apply_follow_changes

handler = FOLLOWS.processor(apply_follow_changes).lambda_handler()
