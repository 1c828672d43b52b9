"""What the hardware is: spec, coordinates, topology, routes, addresses."""

__all__: tuple[str, ...] = ()
