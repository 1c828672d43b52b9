"""Which token comes next."""

import numpy as np
import numpy.typing as npt

from tilewright.errors import ModelError


def choose_token(
    logits: npt.ArrayLike, *, temperature: float = 0.0, rng: np.random.Generator | None = None
) -> int:
    """The likeliest token at temperature 0, the lowest of equals; else one drawn from ``rng``.

    >>> choose_token([0.0, 2.0, 2.0])
    1
    """
    found = np.asarray(logits, dtype=np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        text = f"shape {found.shape}" if found.ndim != 1 else "infinite numbers or NaN"
        expected = "finite numbers, one for each token"
        raise ModelError("logits", text, expected, "look at the weights")
    if not 0.0 <= temperature < np.inf:
        raise ModelError("temperature", f"{temperature}", "a number of 0 or more", "change it")
    if temperature == 0.0:
        return int(found.argmax())
    if rng is None:
        raise ModelError("temperature", f"{temperature}", "a generator to draw from", "pass rng")
    weights = np.exp((found - found.max()) / temperature)
    ladder = np.cumsum(weights)
    return int(np.searchsorted(ladder, rng.random() * ladder[-1], side="right"))
