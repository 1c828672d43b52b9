"""One algorithm a file: plans for the operations that it can carry out."""
