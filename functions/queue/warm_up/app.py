"""Load what readers will ask for into Redis, one step a message."""

from plaza.operate.warm_up.warm_stores import WARM_UPS, warm_stores

handler = WARM_UPS.processor(warm_stores).lambda_handler()
