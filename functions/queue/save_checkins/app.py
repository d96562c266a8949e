"""Store accepted check-ins in MySQL."""

from plaza.checkins.persist import CHECKINS, persist_checkins

handler = CHECKINS.processor(persist_checkins).lambda_handler()
