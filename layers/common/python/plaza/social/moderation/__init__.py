"""Moderation: reports by users, and the queue in which operators resolve them.

Owns the table report. ``content.commands`` hides content and shows it again. Pushes use
``reports``.
"""

from plaza.social.moderation.model import Report, ReportDraft, ReportedContent

__all__ = ["Report", "ReportDraft", "ReportedContent", "reports"]
