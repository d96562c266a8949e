"""Who is followed comes into the inbox, who isn't any more leaves it."""

from plaza.feed.apply_follows import FOLLOWS

handler = FOLLOWS.handler
