"""How time passes: the event engines. Knows no hardware."""

__all__: tuple[str, ...] = ()
