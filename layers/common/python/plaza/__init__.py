"""Plaza: the social side of an app, counted exactly."""

import gc
import os

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    # Imports make no garbage. Collections begin after the first request of the process
    # (``observability.LineMetrics``).
    gc.disable()
