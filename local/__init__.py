"""The stack on one machine, load for it, and the audit. Nothing here touches AWS.

``python -m local`` is the way in.
"""
