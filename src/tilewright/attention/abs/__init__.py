"""The interfaces that indexer and cache operations share."""

__all__: tuple[str, ...] = ()
