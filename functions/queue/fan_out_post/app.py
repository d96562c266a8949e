"""Push posts to the inboxes of followers, one page of followers a message."""

from plaza.social.feed.fan_out import FANOUTS, fan_out

handler = FANOUTS.processor(fan_out).lambda_handler()
