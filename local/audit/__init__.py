"""The audit, an independent oracle: what the stores hold, read and compared.

It shares the names of keys and columns with the product and none of its rules or scripts, so that
it finds what they get wrong.
"""
