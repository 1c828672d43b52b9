"""Small faults put into the source one at a time, to see which of them the tests find."""
