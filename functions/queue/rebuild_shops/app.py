"""Redis is told what MySQL has of shops: of some, or of all, a step at a time."""

from plaza.shops.builds import SHOPS

handler = SHOPS.handler
