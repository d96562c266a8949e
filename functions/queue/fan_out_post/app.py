"""Posts are pushed to the inboxes of followers, a page of them a message."""

from plaza.feed.fanning_out import FANOUTS

handler = FANOUTS.handler
