"""What developers run on the repository: generators and checks."""
