"""Rules that end at a share of the mass: Twilight, and the clustered estimate."""

from dataclasses import replace

import numpy as np

from tests.attention.oracle_flows.decode import (
    Array,
    Moment,
    Score,
    attend,
    best,
    reserved_and,
    softmax,
)


def smallest_set(mass: Array, share: float) -> list[int]:
    """The fewest largest positions whose sum reaches ``share`` of the whole."""
    order = np.lexsort((np.arange(len(mass)), -mass))
    held = np.cumsum(mass[order])
    count = int(np.searchsorted(held, share * mass.sum())) + 1
    return sorted(int(position) for position in order[: min(count, len(order))])


def four_bit(keys: Array) -> Array:
    """Each token on 16 evenly spaced values from its smallest to its largest channel."""
    low, high = keys.min(axis=-1, keepdims=True), keys.max(axis=-1, keepdims=True)
    step = (high - low) / 15.0
    out: Array = np.round((keys - low) / step) * step + low
    return out


def twilight_mass(moment: Moment, candidates: list[int]) -> Array:
    """softmax over the tokens of the candidates on four-bit keys, by page, mean over heads."""
    keys = four_bit(moment.finished(moment.keys)[candidates])
    logits = np.einsum("gd,ptd->gpt", moment.q, keys) / np.sqrt(moment.q.shape[1])
    weights = softmax(logits.reshape(len(moment.q), -1)).reshape(logits.shape)
    out: Array = weights.sum(axis=2).mean(axis=0)
    return out


def twilight(moment: Moment, base: Score, share: float) -> list[int]:
    return pruned_pages(moment, base(moment), share)


def pruned_pages(moment: Moment, scores: Array, share: float) -> list[int]:
    """The budget of the middle by score; of those the fewest that hold the share."""
    middle = moment.middle
    chosen = best(scores[middle], moment.decode.budget)
    candidates = [middle.start + position for position in chosen]
    kept = smallest_set(twilight_mass(moment, candidates), share)
    return reserved_and(moment, [candidates[position] for position in kept])


def twilight_by_head(
    moment: Moment, choices: list[list[int]], share: float
) -> tuple[list[list[int]], Array]:
    """Where every query head has a choice of its own, it prunes its own."""
    middle = range(*moment.middle.indices(moment.num_pages))
    pages, outs = [], []
    for head, choice in enumerate(choices):
        candidates = [page for page in choice if page in middle]
        alone = replace(moment, q=moment.q[head : head + 1])
        kept = smallest_set(twilight_mass(alone, candidates), share)
        pages.append(reserved_and(moment, [candidates[position] for position in kept]))
        outs.append(attend(alone, pages[-1])[0][0])
    return pages, np.array(outs)


def farthest_points(keys: Array, count: int) -> Array:
    """The first key, then again and again the key farthest from those taken."""
    taken = [0]
    distance = ((keys - keys[0]) ** 2).sum(axis=1)
    for _ in range(count - 1):
        taken.append(int(np.argmax(distance)))
        distance = np.minimum(distance, ((keys - keys[taken[-1]]) ** 2).sum(axis=1))
    return keys[taken]


def lloyd(keys: Array, centers: Array) -> tuple[Array, Array]:
    """One step: every key joins its nearest center; means (an empty center stays) and counts."""
    distance = ((keys[:, None] - centers[None]) ** 2).sum(axis=2)
    nearest = distance.argmin(axis=1)
    counts = np.bincount(nearest, minlength=len(centers)).astype(np.float64)
    means = centers.copy()
    for center in range(len(centers)):
        if counts[center]:
            means[center] = keys[nearest == center].mean(axis=0)
    return means, counts


def clustered_mass(moment: Moment, count: int, temperature: float) -> Array:
    """sum_m n_m exp(q . c_m / (temperature sqrt(D))) by page, each head made to sum to one
    over the middle, mean over heads; 0 outside the middle."""
    pages = moment.finished(moment.keys)
    clusters = [lloyd(page, farthest_points(page, count)) for page in pages]
    middle = moment.middle
    means = np.array([mean for mean, _ in clusters])[middle]
    counts = np.array([number for _, number in clusters])[middle]
    logits = np.einsum("gd,pmd->gpm", moment.q, means)
    logits /= temperature * np.sqrt(moment.q.shape[1])
    weights = counts * np.exp(logits - logits.max(axis=(1, 2), keepdims=True))
    shares = weights.sum(axis=2) / weights.sum(axis=(1, 2))[:, None]
    out = np.zeros(moment.num_finished)
    out[middle] = shares.mean(axis=0)
    return out


def frozen_dynamic_top_p(
    moment: Moment, *, share: float, count: int, temperature: float
) -> list[int]:
    """The fewest pages that hold the share of the estimated mass, at most the budget."""
    mass = clustered_mass(moment, count, temperature)[moment.middle]
    kept = smallest_set(mass, share)
    if len(kept) > moment.decode.budget:
        kept = best(mass, moment.decode.budget)
    return reserved_and(moment, [moment.middle.start + position for position in kept])
