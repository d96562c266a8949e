"""Mutants, a module for the files that are tested together."""
