"""Build the bloom filter of a large target, one step a message."""

from plaza.reactions.rebuild import REBUILDS

handler = REBUILDS.handler
