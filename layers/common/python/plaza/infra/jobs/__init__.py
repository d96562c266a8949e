"""What schedules and operators run for all contexts: runs, health checks, expiry, commands."""
