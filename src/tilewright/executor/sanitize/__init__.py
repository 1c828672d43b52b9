"""Programs as a sanitizer sees them."""

__all__ = ()
