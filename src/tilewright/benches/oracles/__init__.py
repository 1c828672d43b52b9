"""Second implementations: slow models that know nothing of the engines they check."""

__all__: tuple[str, ...] = ()
