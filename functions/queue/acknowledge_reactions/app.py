"""Settles that failed when their batch was saved are done again."""

from plaza.reactions.persist import ACKNOWLEDGEMENTS

handler = ACKNOWLEDGEMENTS.handler
