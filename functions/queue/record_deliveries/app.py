"""Move the offsets of webhooks to what they received."""

from plaza.integrations.webhooks.record_deliveries import DELIVERIES, record_deliveries

handler = DELIVERIES.processor(record_deliveries).lambda_handler()
