"""Build the bloom filter of a large target, one step a message."""

from plaza.core.reactions.rebuild import REBUILDS, rebuild

handler = REBUILDS.processor(rebuild).lambda_handler()
