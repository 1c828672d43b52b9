"""LLM shapes as data, weights, tokenizer, forward pass with the attention step passed in."""

__all__: tuple[str, ...] = ()
