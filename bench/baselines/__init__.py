"""What is commonly written instead, as well as it can be: the peers of the figures."""
