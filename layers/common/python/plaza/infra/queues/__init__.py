"""Queues of SQS: how messages are declared, sent, consumed and dead-lettered."""
