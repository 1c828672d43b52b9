"""Small decodes for tests of the rules."""

import numpy as np

from tests.attention.oracle_flows.decode import Array, Decode


def decode_of(keys: Array, queries: Array, *, block_size: int, budget: int = 1) -> Decode:
    """All tokens but those of the steps are the prompt."""
    prompt_tokens = len(keys) - len(queries)
    return Decode(keys, keys.copy(), queries, prompt_tokens, block_size, budget)


def random_decode(seed: int, *, steps: int = 3, pages: int = 6, block_size: int = 4) -> Decode:
    rng = np.random.default_rng(seed)
    tokens = pages * block_size + steps
    keys, values = rng.normal(size=(tokens, 8)), rng.normal(size=(tokens, 8))
    queries = rng.normal(size=(steps, 2, 8))
    return Decode(keys, values, queries, tokens - steps, block_size, budget=2)
