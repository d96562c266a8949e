"""Counters: totals of content and of users, moved in the transaction of what they count."""

from plaza.counters.mysql_counters import ContentCounter, add_to_content, add_to_users, lock_content

__all__ = ["ContentCounter", "add_to_content", "add_to_users", "lock_content"]
