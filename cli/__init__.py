"""What the command lines share: paths of the checkout, commands, output, input files."""
