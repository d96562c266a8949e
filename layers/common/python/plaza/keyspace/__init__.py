"""The keys of Redis, all contexts' together: which are big, and which are asked for most."""

__all__ = ["key_scan"]
