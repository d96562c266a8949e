"""Helpers of tests: servers, Plaza in one process, access to the stores."""
