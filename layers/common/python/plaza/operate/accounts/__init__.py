"""Accounts as a whole: erasure, and the export of what is stored about a user.

The contexts erase and export what they own: their manifests name ``erase`` and ``export``.
"""

from plaza.operate.accounts.model import ExportCursor

__all__ = ["ExportCursor"]
