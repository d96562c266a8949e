"""Move the offsets of webhooks to what they received."""

from plaza.webhooks.record_deliveries import DELIVERIES, record_deliveries

handler = DELIVERIES.processor(record_deliveries).lambda_handler()
