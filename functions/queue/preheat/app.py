"""Load what readers will ask for into Redis, one step a message."""

from plaza.preheat.warm_stores import PREHEATS, warm_stores

handler = PREHEATS.processor(warm_stores).lambda_handler()
