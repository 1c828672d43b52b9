"""One way from a call of the host to programs on PEs: bind, place, send, run, report."""
