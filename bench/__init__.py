"""What is fast, measured: each figure beside its limit or a peer measured in the same run."""
