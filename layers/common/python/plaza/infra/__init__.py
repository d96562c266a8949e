"""The infrastructure of all contexts: settings, Redis, MySQL, queues, HTTP, observability."""

from plaza.infra.runtime.lazy_modules import defer_package

# redis-py and Powertools import these, and no function uses them: a fourth of a cold start.
defer_package("redis.asyncio")
defer_package("importlib.metadata")
defer_package("aws_lambda_powertools.event_handler", main="api_gateway")
