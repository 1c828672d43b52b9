"""A decode step of a flow on a machine: data, simulation, checks, record."""
