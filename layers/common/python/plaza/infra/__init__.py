"""What every context stands on: settings, Redis, MySQL, queues, HTTP, observability."""
