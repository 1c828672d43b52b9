"""A run of a program: request, execution, listeners, record, sweep."""
