"""Webhooks: offsets in the logs of events, from which events are sent in order, at least once.

Owns the table webhook and the queues webhooks and deliveries. DispatchWebhooks reads what an
endpoint has not received and queues it; SendWebhooks, outside of the VPC, sends it;
RecordDeliveries moves the offset. Operators use ``operate_webhooks``.
"""

__all__ = ["model", "operate_webhooks"]
