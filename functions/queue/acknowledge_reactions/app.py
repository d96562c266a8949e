"""Acknowledge stored reactions again whose first acknowledgement failed."""

from plaza.core.reactions.persist import ACKNOWLEDGEMENTS, acknowledge_again

handler = ACKNOWLEDGEMENTS.processor(acknowledge_again).lambda_handler()
