"""Decide reserved orders in MySQL: successes while there is stock."""

from plaza.flash_sales.persist import ORDERS

handler = ORDERS.handler
