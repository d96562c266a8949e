"""Reservations that could not be saved become failures, unless they were saved after all."""

from plaza.flash_sales.persist import ORDERS_DLQ

handler = ORDERS_DLQ.handler
