"""Store accepted check-ins in MySQL."""

from plaza.commerce.checkins.persist import CHECKINS, persist_checkins

handler = CHECKINS.processor(persist_checkins).lambda_handler()
