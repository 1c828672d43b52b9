"""The two ends of every comparison, and the rule that looks at positions only."""

import numpy as np

from tests.attention.oracle_flows.decode import Array, Moment, softmax


def oracle(moment: Moment) -> Array:
    """The true attention mass of a page, mean over the heads of the group."""
    mass = moment.by_page(softmax(moment.logits)).mean(axis=0)
    out: Array = mass[: moment.num_finished]
    return out


def streaming_llm(moment: Moment) -> Array:
    """The later a page, the better: sinks are reserved, the budget is the recent window."""
    return np.arange(moment.num_finished, dtype=np.float64)


def mixed(number: int) -> int:
    """A 32-bit finalizer: every bit of the input moves about half of the bits of the output."""
    number &= 0xFFFFFFFF
    number ^= number >> 16
    number = number * 0x85EBCA6B & 0xFFFFFFFF
    number ^= number >> 13
    number = number * 0xC2B2AE35 & 0xFFFFFFFF
    return number ^ number >> 16


def random(moment: Moment, seed: int = 0, layer: int = 0) -> Array:
    """24 bits that page, step, KV head, layer and seed are stirred into, one after the other."""
    number = mixed(mixed(mixed(mixed(seed) + layer) + moment.decode.head) + moment.step)
    scores = [mixed(number + page) & 0xFFFFFF for page in range(moment.num_finished)]
    return np.array(scores, dtype=np.float64)
