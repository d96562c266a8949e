"""What is fast, measured: each figure beside its limit or a peer measured in the same run."""

from local.paths import add_layer_to_path

add_layer_to_path()
