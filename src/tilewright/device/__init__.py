"""How the hardware behaves, one file per block."""

__all__: tuple[str, ...] = ()
