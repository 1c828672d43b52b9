"""Rules on the latent cache of MLA: channels ``[kv | rope]``, one selection for all heads."""

import numpy as np

from tests.attention.oracle_flows.decode import Array, Moment


def mean_latents(moment: Moment) -> Array:
    out: Array = moment.finished(moment.keys).mean(axis=1)
    return out


def rope_aware_block_sparse_mla(moment: Moment) -> Array:
    out: Array = mean_latents(moment) @ moment.q.mean(axis=0)
    return out


def rope_weighted_block_sparse_mla(moment: Moment, kv_lora_rank: int, rope_weight: float) -> Array:
    """(1 - b) <q_nope, c_kv> + b <q_pe, c_pe>"""
    query, means = moment.q.mean(axis=0), mean_latents(moment)
    plain = means[:, :kv_lora_rank] @ query[:kv_lora_rank]
    rope = means[:, kv_lora_rank:] @ query[kv_lora_rank:]
    out: Array = (1.0 - rope_weight) * plain + rope_weight * rope
    return out


def rope_unaware_block_sparse_mla(moment: Moment, kv_lora_rank: int) -> Array:
    return rope_weighted_block_sparse_mla(moment, kv_lora_rank, rope_weight=0.0)


def lserve_centroid_mla(moment: Moment, part: int = 16, channels: int | None = None) -> Array:
    """max over sub-blocks of <mean query, c_b>, on the first ``channels`` of them"""
    means = moment.finished(moment.keys, part).mean(axis=2)[..., :channels]
    out: Array = (means @ moment.q.mean(axis=0)[:channels]).max(axis=1)
    return out


def learned_block_sparse_mla(moment: Moment, weight: Array) -> Array:
    """<W q_flat, c>; W is [latent, heads * latent]"""
    out: Array = mean_latents(moment) @ (weight @ moment.q.reshape(-1))
    return out


def learned_factorized_block_sparse_mla(
    moment: Moment, query_weight: Array, token_weight: Array, channel_weight: Array
) -> Array:
    """sum_h max_m <Wq_h^T q_h, g_hm>, g_h = (Wt_h^T X) Wk_h

    Weights are [H, latent, r], [H, block, m] and [H, latent, r].
    """
    pages = moment.finished(moment.keys)
    descriptors = np.einsum("htm,ptd,hdr->phmr", token_weight, pages, channel_weight)
    projected = np.einsum("hdr,hd->hr", query_weight, moment.q)
    out: Array = np.einsum("hr,phmr->phm", projected, descriptors).max(axis=2).sum(axis=1)
    return out
