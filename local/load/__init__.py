"""Load for the stack: crowds, files of real reactions, and checks of their outcome."""
