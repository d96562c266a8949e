"""Posts are pushed to the inboxes of followers, a page of them a message."""

from plaza.feed.fan_out import FANOUTS

handler = FANOUTS.handler
