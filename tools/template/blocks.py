"""What ``make template`` writes: block -> data."""

from typing import Any

from tools.template.routes import make_definition, make_permissions, read_operations
from tools.template.text import replace_blocks


def write_template(template: str) -> str:
    """Return the template with its blocks as the code is. Raises ValueError."""
    return replace_blocks(template, make_blocks())


def make_blocks() -> dict[str, Any]:
    """Return the data of all blocks."""
    operations = read_operations()
    return {
        "routes": {"DefinitionBody": make_definition(operations)},
        "permissions": make_permissions({operation.function for operation in operations}),
    }
