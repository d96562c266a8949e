"""What developers run: generators, locks, builds, the documentation site. ``python -m tools``."""
