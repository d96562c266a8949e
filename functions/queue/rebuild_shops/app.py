"""Project shops from MySQL to Redis: some of them, or all, one step a message."""

from plaza.shops.jobs import SHOPS

handler = SHOPS.handler
