"""Drop changed values from caches a second time: a reader may have refilled them."""

from plaza.infra.cache import DROPS

handler = DROPS.handler
