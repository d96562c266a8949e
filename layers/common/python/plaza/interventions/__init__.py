"""Interventions: what an operator looks at or changes in the stores when something is wrong.

``verbs`` has all of them by name, for the function Operate; ``sweep_now`` is one that the API has,
too. Owns no table and no key: each verb calls the owner.
"""

from plaza.interventions.model import Refused

__all__ = ["Refused", "sweep_now", "verbs"]
