"""Big and hot keys in Redis, of all contexts."""

__all__ = ["key_scan"]
