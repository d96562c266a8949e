"""Load: crowds and files of real reactions played against the stack, and what must come of them."""
