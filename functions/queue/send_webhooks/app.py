"""Send events to webhooks, outside of the VPC."""

from plaza.integrations.webhooks.send_events import WEBHOOKS, send_events

handler = WEBHOOKS.processor(send_events).lambda_handler()
