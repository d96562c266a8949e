"""Benchmarks: each figure beside a limit or a peer that the same run measured."""

from cli.paths import add_layer_to_path

add_layer_to_path()
