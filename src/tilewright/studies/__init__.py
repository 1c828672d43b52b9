"""What composes the next row: demo, run with its traces, compare, sweep."""
