"""Sources of requests on which flows are judged."""

__all__: tuple[str, ...] = ()
