"""Results of the project, held to those of the commit that last recorded them."""
