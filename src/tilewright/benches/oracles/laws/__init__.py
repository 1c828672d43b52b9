"""Laws that are known without a simulator, and what our engines make of them; one file a law."""

__all__: tuple[str, ...] = ()
