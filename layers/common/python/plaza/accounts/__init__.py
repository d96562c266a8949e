"""Accounts as a whole: erasure, and the export of what is stored about a user.

Owns the table erasure. The contexts erase what they own, each in its module ``erasure``.
"""

from plaza.accounts.model import Erasure, ExportedRow, ExportPosition

__all__ = ["Erasure", "ExportPosition", "ExportedRow"]
