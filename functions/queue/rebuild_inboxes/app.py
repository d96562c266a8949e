"""Inboxes, and lists of stars' posts, that Redis lacks are filled from MySQL."""

from plaza.feed.rebuild import INBOXES

handler = INBOXES.handler
