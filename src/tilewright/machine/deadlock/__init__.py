"""The proof that the dependencies of channels have no cycle."""
