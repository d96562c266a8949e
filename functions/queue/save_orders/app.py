"""Reservations become orders: successes while there is stock."""

from plaza.flash_sales.saving import ORDERS

handler = ORDERS.handler
