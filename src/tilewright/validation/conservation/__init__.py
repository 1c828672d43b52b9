"""Conservation rules of recorded runs, and defects that break them."""

__all__: tuple[str, ...] = ()
