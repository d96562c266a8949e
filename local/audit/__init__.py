"""The audit: an independent oracle that reads all stores and compares them.

It shares key and column names with the product, but no rules and no scripts, so that it finds their
errors.
"""
