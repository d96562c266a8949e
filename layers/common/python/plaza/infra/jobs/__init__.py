"""What schedules run for all contexts: their records, health checks, expiry."""
