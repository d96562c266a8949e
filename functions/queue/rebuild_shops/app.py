"""Redis is told what MySQL has of shops: of some, or of all, a step at a time."""

from plaza.shops.jobs import SHOPS

handler = SHOPS.handler
