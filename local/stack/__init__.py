"""The stack on one machine: servers, an AWS emulator, the deployed template."""
