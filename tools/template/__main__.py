"""``make template``: write the blocks of template.yaml."""

from cli.paths import TEMPLATE
from tools.template.blocks import write_template

if __name__ == "__main__":
    TEMPLATE.write_text(write_template(TEMPLATE.read_text()))
