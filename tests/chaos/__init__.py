"""The failure matrix: responses and losses of the running stack while a part fails."""
