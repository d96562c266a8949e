"""Add posts of newly followed authors to inboxes; remove those of unfollowed ones."""

from plaza.feed.apply_follows import FOLLOWS

handler = FOLLOWS.handler
