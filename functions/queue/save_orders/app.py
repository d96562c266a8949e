"""Reservations become orders: successes while there is stock."""

from plaza.flash_sales.persist import ORDERS

handler = ORDERS.handler
