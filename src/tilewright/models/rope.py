"""Rotary position embedding: its frequencies, how long contexts stretch them, and the rotation.

Channel i of the first half of a head turns with channel i of the second half. Files that keep
pairs side by side are put into this order as they are loaded.
"""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tilewright.errors import ModelError

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Llama3Scaling:
    """Slow channels are stretched by ``factor``, fast ones stay, those between are blended."""

    factor: float
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_context: int = 8192

    def stretched(self, plain: Floats, _rope: "RopeSpec") -> Floats:
        """Return the frequencies of a longer context."""
        turns = self.original_context * plain / (2 * math.pi)  # in the original context
        low, high = self.low_frequency_factor, self.high_frequency_factor
        kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
        blended: Floats = plain * (kept + (1.0 - kept) / self.factor)
        return blended


@dataclass(frozen=True, slots=True, kw_only=True)
class YarnScaling:
    """Channels that turn less than ``beta_slow`` times in the original context are stretched by
    ``factor``, those that turn more than ``beta_fast`` times stay, with a ramp between.

    ``mscale`` and ``mscale_all`` are what DeepSeek's models scale rotations and logits by.
    """

    factor: float
    original_context: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    mscale: float = 1.0
    mscale_all: float = 0.0

    def magnitude(self, weight: float) -> float:
        return 1.0 if self.factor <= 1.0 else 0.1 * weight * math.log(self.factor) + 1.0

    def stretched(self, plain: Floats, rope: "RopeSpec") -> Floats:
        """Return the frequencies of a longer context."""

        def channel_that_turns(times: float) -> float:
            wavelength = self.original_context / (times * 2 * math.pi)
            return rope.width * math.log(wavelength) / (2 * math.log(rope.base))

        first = max(math.floor(channel_that_turns(self.beta_fast)), 0)
        last = min(math.ceil(channel_that_turns(self.beta_slow)), rope.width - 1)
        ramp = (np.arange(rope.width // 2) - first) / (max(last - first, 0.001))
        share = np.clip(ramp, 0.0, 1.0)
        blended: Floats = plain * (1.0 - share + share / self.factor)
        return blended


@dataclass(frozen=True, slots=True)
class DivisorScaling:
    """Every frequency divided by a number of its own, as GGUF files carry them."""

    divisors: tuple[float, ...]

    def stretched(self, plain: Floats, _rope: "RopeSpec") -> Floats:
        """Return the frequencies of a longer context."""
        divided: Floats = plain / np.array(self.divisors)
        return divided


Scaling: TypeAlias = Llama3Scaling | YarnScaling | DivisorScaling


@dataclass(frozen=True, slots=True, kw_only=True)
class RopeSpec:
    """``width`` channels of a head turn, channel pair i by ``base ** (-2 i / width)`` a token."""

    base: float
    width: int
    scaling: Scaling | None = None

    def __post_init__(self) -> None:
        if self.width < 2 or self.width % 2:
            raise ModelError("rope.width", f"{self.width}", "an even number", "correct the shape")
        if not (math.isfinite(self.base) and self.base > 0):
            raise ModelError("rope.base", f"{self.base}", "a positive number", "correct the shape")
        if isinstance(self.scaling, DivisorScaling):
            found = len(self.scaling.divisors)
            if found != self.width // 2 or min(self.scaling.divisors) <= 0:
                expected = f"{self.width // 2} positive ones"
                raise ModelError("rope.scaling", f"{found} divisors", expected, "correct the shape")

    @property
    def frequencies(self) -> Floats:
        """Radians a token turns each pair of channels by: [width / 2]."""
        plain: Floats = self.base ** (-np.arange(0, self.width, 2, dtype=np.float64) / self.width)
        return plain if self.scaling is None else self.scaling.stretched(plain, self)

    @property
    def amplitude(self) -> float:
        """What rotated channels are multiplied by."""
        if not isinstance(self.scaling, YarnScaling):
            return 1.0
        if not self.scaling.mscale_all:
            return self.scaling.magnitude(1.0)
        scaling = self.scaling
        return scaling.magnitude(scaling.mscale) / scaling.magnitude(scaling.mscale_all)

    @property
    def logit_factor(self) -> float:
        """What attention logits are multiplied by, beyond 1/sqrt(width)."""
        if isinstance(self.scaling, YarnScaling) and self.scaling.mscale_all:
            return self.scaling.magnitude(self.scaling.mscale_all) ** 2
        return 1.0

    def turns(self, positions: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Cosines and sines at token positions: [tokens, width / 2] each, in float64."""
        angles = positions[:, None].astype(np.float64) * self.frequencies
        return np.cos(angles) * self.amplitude, np.sin(angles) * self.amplitude
