"""The network of a machine: dies, IO chiplets and the fabric as nodes and links."""
