"""Common designs, implemented as well as possible: the peers of the figures."""
