"""Drop changed values from caches a second time: a reader may have refilled them."""

from plaza.infra.derived.cache import DROPS, drop_again

handler = DROPS.processor(drop_again).lambda_handler()
