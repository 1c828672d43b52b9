"""What is known of flows: their text, their quality, their decode steps on machines."""
