"""Check-ins that were accepted become rows."""

from plaza.checkins.persist import CHECKINS

handler = CHECKINS.handler
