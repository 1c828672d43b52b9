"""Models in folders of safetensors files."""

__all__: tuple[str, ...] = ()
