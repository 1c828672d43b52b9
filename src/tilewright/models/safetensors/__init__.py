"""Models in folders of safetensors files."""
