"""Operations that choose pages."""

__all__: tuple[str, ...] = ()
