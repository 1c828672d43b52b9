"""Speed of the simulator itself and simulated efficiency, as ratios to peers and limits."""
