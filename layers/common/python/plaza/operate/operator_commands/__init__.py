"""Operator commands: what an operator looks at or changes in the stores when something is wrong.

``commands`` has all of them by name, for the function Operate; ``sweep_now`` is one that the API
has, too. Owns no table and no key: each command calls the owner.
"""

from plaza.operate.operator_commands.model import Refused

__all__ = ["Refused", "commands", "sweep_now"]
