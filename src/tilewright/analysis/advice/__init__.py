"""Changes of a machine that would make a run faster, with bounds and estimates."""
