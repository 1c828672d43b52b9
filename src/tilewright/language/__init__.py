"""``tl``: what a kernel may say, its values and meaning; Triton adaptor."""

__all__: tuple[str, ...] = ()
