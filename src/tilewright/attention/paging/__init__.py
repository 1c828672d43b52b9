"""Pages of the key-value cache: accounting and page tables of a request."""

__all__: tuple[str, ...] = ()
