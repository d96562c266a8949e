"""Decide the orders that SaveOrders dead-lettered, by stock."""

from plaza.commerce.flash_sales.persist import ORDERS_DLQ, decide_dead_letters

handler = ORDERS_DLQ.processor(decide_dead_letters).lambda_handler()
