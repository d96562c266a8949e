"""The infrastructure of all contexts: settings, Redis, MySQL, queues, HTTP, observability."""
