"""Project shops from MySQL to Redis: some of them, or all, one step a message."""

from plaza.commerce.shops.jobs import SHOPS, run_jobs

handler = SHOPS.processor(run_jobs).lambda_handler()
