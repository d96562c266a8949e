"""Acknowledge stored reactions again whose first acknowledgement failed."""

from plaza.reactions.persist import ACKNOWLEDGEMENTS

handler = ACKNOWLEDGEMENTS.handler
