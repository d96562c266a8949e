"""What is fast, measured: each figure beside its limit or a peer measured in the same run."""

from local.paths import reach_the_layer

reach_the_layer()
