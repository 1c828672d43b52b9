"""What flows keep of dense attention, as text and plots."""

__all__: tuple[str, ...] = ()
