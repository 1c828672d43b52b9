"""Attention itself: over everything, over chosen pages, absorbed MLA, and merged from parts."""

import math
from typing import NamedTuple

import numpy as np

from tests.attention.oracle_ops.linear import dot
from tests.attention.oracle_ops.row import Array, OracleRow, Positions


class Attended(NamedTuple):
    """One row's result: ``out`` [G, Dv], log of the sum of weights [G], mass by page [S, G]."""

    out: Array
    log_sum: Array
    mass: Array


def attend_tokens(
    q: Array, keys: Array, values: Array, tokens: list[int], scale: float
) -> tuple[Array, Array, Array]:
    """Softmax over exactly ``tokens``; also each token's weight ``[G, T]``."""
    heads = q.shape[0]
    out, log_sum = np.zeros((heads, values.shape[1])), np.full(heads, -math.inf)
    weight = np.zeros((heads, keys.shape[0]))
    for g in range(heads):
        if not tokens:
            continue
        logits = {t: scale * dot(q[g], keys[t]) for t in tokens}
        top = max(logits.values())
        total = math.fsum(math.exp(value - top) for value in logits.values())
        log_sum[g] = top + math.log(total)
        for t, value in logits.items():
            weight[g, t] = math.exp(value - top) / total
            for d in range(values.shape[1]):
                out[g, d] += weight[g, t] * float(values[t, d])
    return out, log_sum, weight


def token_list(row: OracleRow, pages: Positions) -> list[int]:
    return [
        int(page) * row.block_size + offset
        for page in pages
        for offset in range(row.tokens_in(int(page)))
    ]


def sparse_attention(
    row: OracleRow,
    q: Array,
    keys: Array,
    values: Array,
    pages: Positions,
    *,
    scale: float | None = None,
) -> Attended:
    """``q`` [G, D] over the tokens of ``pages``; keys [T, D], values [T, Dv] in logical order."""
    factor = 1.0 / math.sqrt(q.shape[1]) if scale is None else scale
    out, log_sum, weight = attend_tokens(q, keys, values, token_list(row, pages), factor)
    mass = np.zeros((row.num_pages, q.shape[0]))
    for page in range(row.num_pages):
        for offset in range(row.tokens_in(page)):
            mass[page] += weight[:, page * row.block_size + offset]
    return Attended(out, log_sum, mass)


def dense_attention(
    row: OracleRow, q: Array, keys: Array, values: Array, *, scale: float | None = None
) -> Attended:
    return sparse_attention(row, q, keys, values, np.arange(row.num_pages), scale=scale)


def mla_attention(
    row: OracleRow, q: Array, latent: Array, pages: Positions, *, kv_lora_rank: int, scale: float
) -> Attended:
    """Absorbed: the whole latent is the key, its first ``kv_lora_rank`` channels the value."""
    return sparse_attention(row, q, latent, latent[:, :kv_lora_rank], pages, scale=scale)


def merge(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Joins (out, log_sum) of disjoint sets of tokens into that of all of them."""
    outs, log_sums = zip(*parts, strict=True)
    merged, total = np.zeros(outs[0].shape), np.empty(log_sums[0].shape)
    for g in range(total.shape[0]):
        top = max(float(log_sum[g]) for log_sum in log_sums)
        shares = [math.exp(float(log_sum[g]) - top) for log_sum in log_sums]
        total[g] = top + math.log(math.fsum(shares))
        for out, share in zip(outs, shares, strict=True):
            merged[g] += out[g] * share / math.fsum(shares)
    return merged, total


def zone_attention(
    row: OracleRow,
    q: Array,
    keys: Array,
    values: Array,
    pages: Positions,
    *,
    counts: Array,
    mean_keys: Array,
    value_sums: Array,
    scale: float | None = None,
) -> Array:
    """Exact on ``pages``; every summary of another page stands for ``counts`` equal keys.

    It adds ``n e^{q.c}`` to the denominator and ``e^{q.c} sum v`` to the numerator.
    ``counts`` [S, m, 1], ``mean_keys`` [S, m, D], ``value_sums`` [S, m, Dv].
    """
    factor = 1.0 / math.sqrt(q.shape[1]) if scale is None else scale
    chosen = {int(page) for page in pages}
    out = np.zeros((q.shape[0], values.shape[1]))
    for g in range(q.shape[0]):
        terms = [(factor * dot(q[g], keys[t]), 1.0, values[t]) for t in token_list(row, pages)]
        for page, m in np.ndindex(*counts.shape[:2]):
            if page not in chosen and counts[page, m, 0] > 0:
                logit = factor * dot(q[g], mean_keys[page, m])
                terms.append((logit, float(counts[page, m, 0]), value_sums[page, m]))
        top = max(logit for logit, _, _ in terms)
        bottom = math.fsum(math.exp(logit - top) * count for logit, count, _ in terms)
        for logit, _, value in terms:
            out[g] += math.exp(logit - top) * value / bottom
    return out
