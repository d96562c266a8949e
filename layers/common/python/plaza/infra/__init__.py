"""The infrastructure of all contexts: settings, Redis, MySQL, queues, HTTP, observability."""

from plaza.infra.runtime.lazy_modules import defer_package

# redis-py imports these, and no function uses them: a fifth of a cold start.
defer_package("redis.asyncio")
defer_package("importlib.metadata")
