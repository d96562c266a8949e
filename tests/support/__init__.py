"""What tests use and is no test: servers, a whole Plaza in one process, looks into the stores."""
