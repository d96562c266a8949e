"""Repair what a reconciliation run found, if it still differs."""

from plaza.reconciliation.repair import REPAIRS

handler = REPAIRS.handler
