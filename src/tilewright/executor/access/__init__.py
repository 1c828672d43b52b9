"""Where accesses lie: addresses, segments, the memories that hold them, their order."""
