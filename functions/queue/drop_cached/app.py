"""What was changed in MySQL is let go of in Redis a second time: it may have been refilled."""

from plaza.infra.cache import DROPS

handler = DROPS.handler
