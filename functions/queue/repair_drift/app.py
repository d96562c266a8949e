"""Repair what a reconciliation run found, if it still differs."""

from plaza.operate.reconciliation.repair import REPAIRS, repair

handler = REPAIRS.processor(repair).lambda_handler()
