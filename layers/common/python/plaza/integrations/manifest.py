"""The contexts of the wing ``integrations``: events for other systems."""

from plaza.infra.contexts import Context

CONTEXTS = (Context(name="webhooks", commands="webhooks.operator_commands"),)
