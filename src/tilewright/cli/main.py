"""The entry point of the ``tilewright`` command."""

__all__ = ("main",)


def main() -> int:
    return 0
