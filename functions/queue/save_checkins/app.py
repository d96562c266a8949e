"""Check-ins that were accepted become rows."""

from plaza.checkins.saving import CHECKINS

handler = CHECKINS.handler
