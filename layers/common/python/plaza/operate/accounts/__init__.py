"""Accounts as a whole: erasure, and the export of what is stored about a user.

Owns the table erasure. The contexts erase and export what they own, each in its
modules ``erasure`` and ``export``.
"""

from plaza.operate.accounts.model import Erasure, ExportCursor

__all__ = ["Erasure", "ExportCursor", "request_erasure"]
