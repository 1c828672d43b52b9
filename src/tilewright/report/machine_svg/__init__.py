"""A machine as a picture: its SIPs, cubes and PEs with their figures."""
