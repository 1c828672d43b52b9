"""Rules on the mean key of a page."""

import numpy as np

from tests.attention.oracle_flows.decode import Array, Moment, softmax


def centroids(moment: Moment) -> Array:
    """c_P: [pages, D]"""
    out: Array = moment.finished(moment.keys).mean(axis=1)
    return out


def block_sparse_attention(moment: Moment) -> Array:
    """<mean query, c_P>"""
    out: Array = centroids(moment) @ moment.q.mean(axis=0)
    return out


def gqa_block_sparse_attention(moment: Moment) -> Array:
    """max_g softmax over the middle of 0.09 <q_g, c_P>"""
    logits = 0.09 * (moment.q @ centroids(moment).T)
    scores = np.zeros(moment.num_finished)
    if moment.middle.stop > moment.middle.start:
        scores[moment.middle] = softmax(logits[:, moment.middle]).max(axis=0)
    return scores


def lserve_centroid_sparse_attention(moment: Moment, part: int = 16) -> Array:
    """max over sub-blocks of <mean query, c_Pb>"""
    means = moment.finished(moment.keys, part).mean(axis=2)
    out: Array = (means @ moment.q.mean(axis=0)).max(axis=1)
    return out


def centered_block_sparse_attention(moment: Moment) -> Array:
    """s_P - mean of s over the middle, s_P = mean_g <q_g, c_P>"""
    plain = (moment.q @ centroids(moment).T).mean(axis=0)
    middle = plain[moment.middle]
    out: Array = plain - (middle.mean() if middle.size else 0.0)
    return out


def venergy_gated_centroid(moment: Moment) -> Array:
    """<mean query, c_P> times the mean norm of the page's values"""
    energy = np.linalg.norm(moment.finished(moment.values), axis=2).mean(axis=1)
    out: Array = block_sparse_attention(moment) * energy
    return out
