"""The tools around Plaza: the stack on one machine, load for it, and the audit. Nothing here ships.

``python -m local`` is the way in.
"""
