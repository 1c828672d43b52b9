"""What flows keep of dense attention, as text and plots."""
