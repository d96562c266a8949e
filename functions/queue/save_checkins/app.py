"""Store accepted check-ins in MySQL."""

from plaza.checkins.persist import CHECKINS

handler = CHECKINS.handler
