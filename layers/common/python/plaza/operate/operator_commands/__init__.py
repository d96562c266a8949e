"""Operator commands: what an operator looks at or changes in the stores when something is wrong.

``commands`` runs what all contexts declare, for the function Operate; ``operator_commands`` has
those that concern MySQL or Redis as a whole. ``sweep_now`` is one that the API has, too. Owns no
table and no key.
"""

__all__ = ["commands", "sweep_now"]
