"""The documentation site: built from docs/, the contract and the documents of the repository."""
