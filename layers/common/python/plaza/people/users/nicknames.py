"""Random nicknames for new users. No I/O."""

from __future__ import annotations

import secrets

_ADJECTIVES = """
amber brave bright calm clever cosy curious eager early fair fond free gentle glad golden happy
honest jolly keen kind lively lucky merry mild neat nimble patient playful polite proud quick quiet
rosy shiny silver smart snowy soft sunny swift tidy warm wild wise young
"""
_NOUNS = """
badger bear beaver bee birch bird clover crane deer dolphin dove duck falcon fern finch fox hare
hazel heron ibis jay koala lark lily lynx maple marten moose moth newt oak orca otter owl panda
pine plover poppy puffin quail rabbit raven robin rowan seal sparrow stork swan tern tiger trout
turtle vole walrus whale willow wren yak zebra
"""


def make_nickname() -> str:
    """Return a nickname such as "quiet otter 0417". It need not be unique."""
    number = secrets.randbelow(10_000)
    return f"{secrets.choice(_ADJECTIVES.split())} {secrets.choice(_NOUNS.split())} {number:04}"
