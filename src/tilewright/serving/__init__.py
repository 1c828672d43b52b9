"""Decode loop: requests, scheduler, HTTP server."""

__all__: tuple[str, ...] = ()
