"""The engine in Python: the living definition of ``docs/engine.md``."""
