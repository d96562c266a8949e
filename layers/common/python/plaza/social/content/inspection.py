"""Slots of reviews beside the reviews, for the reconciliation."""

from plaza.social.content.mysql_review_slots import find_wrong as find_wrong_slots
from plaza.social.content.mysql_review_slots import repair as repair_slots

__all__ = ["find_wrong_slots", "repair_slots"]
