"""Operations that keep per-page state."""

__all__: tuple[str, ...] = ()
