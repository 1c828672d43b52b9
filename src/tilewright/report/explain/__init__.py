"""What bounds a run and what would help, as remarks and text."""
