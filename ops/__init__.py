"""What operators run against stores and queues of an environment. ``python -m ops``."""
