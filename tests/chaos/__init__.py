"""The failure matrix: what the running stack does when a part of it fails, and what is lost."""
