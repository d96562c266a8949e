"""What developers run, and what generates files of this repository."""
