"""Push posts to the inboxes of followers, one page of followers a message."""

from plaza.feed.fan_out import FANOUTS

handler = FANOUTS.handler
