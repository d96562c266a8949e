"""Blocks of template.yaml that follow from the code: ``make generate`` writes them.

A block is what is between ``# BEGIN name`` and ``# END name``. The rest of the template is written
by hand. SAM reads one file of plain YAML.
"""
