"""Text of a model under a flow, with the simulated time of its steps."""
