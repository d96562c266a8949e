"""The Bloom filter of a big target is built in the background, a step at a time."""

from plaza.reactions.rebuild import REBUILDS

handler = REBUILDS.handler
