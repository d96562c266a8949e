"""The whole of Plaza on one machine: servers, an AWS emulator, the deployed template, its tools.

Nothing here ships. ``python -m local`` is the way in; tests use ``local.stack`` and
``local.servers``.
"""
