"""Decide the orders that SaveOrders dead-lettered, by stock."""

from plaza.flash_sales.persist import ORDERS_DLQ

handler = ORDERS_DLQ.handler
