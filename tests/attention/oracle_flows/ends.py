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
