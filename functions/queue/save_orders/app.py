"""Decide reserved orders in MySQL: successes while there is stock."""

from plaza.commerce.flash_sales.persist import ORDERS, persist_orders

handler = ORDERS.processor(persist_orders).lambda_handler()
