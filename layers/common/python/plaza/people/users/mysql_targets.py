"""SELECTs of users as targets of reactions; see ``TargetSelects``."""

from __future__ import annotations

from plaza.core.targets.types import TargetSelects

USER = TargetSelects("SELECT 'user', id, 0, '' FROM user WHERE id IN ({ids})")
