"""Check-ins that were accepted become rows."""

from plaza.checkins import CHECKINS

handler = CHECKINS.handler
