"""The line that a command which simulates prints first."""

__all__ = ("engine_line",)


def engine_line(kind: str, native_built: bool) -> str:
    """Which engine runs and, without a compiled core, how to get it.

    >>> engine_line("native", native_built=True)
    'engine: native (compiled core)'
    """
    if kind == "native":
        return "engine: native (compiled core)"
    if native_built:
        return f"engine: {kind} (pure Python, although the compiled core is there)"
    return (
        f"engine: {kind} (pure Python: this install has no compiled core; "
        "for the native engine install a C++ compiler, then reinstall tilewright)"
    )
