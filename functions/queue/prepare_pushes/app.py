"""Compose push messages, and queue one for each browser."""

from plaza.notifications.notifications.prepare_pushes import PUSHES, prepare

handler = PUSHES.processor(prepare).lambda_handler()
