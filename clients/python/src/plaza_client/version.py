"""The version of this package: the version of the contract that it was generated from."""

__version__ = "0.4.0"
