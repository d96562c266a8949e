"""Parameters of templates on the command line of SAM."""


def render_parameter(pair: tuple[str, str]) -> str:
    """Return a pair for ``--parameter-overrides``: ``Name="value"``, quotes in it escaped."""
    name, value = pair
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}="{escaped}"'
