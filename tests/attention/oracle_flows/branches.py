"""Rules whose output is not one softmax over one set of pages."""

import numpy as np

from tests.attention.oracle_flows.centroid import centroids
from tests.attention.oracle_flows.channels import largest_channels
from tests.attention.oracle_flows.compressed import (
    NsaWeights,
    nsa_compressed,
    nsa_gates,
    nsa_scores,
)
from tests.attention.oracle_flows.decode import (
    Array,
    Moment,
    attend,
    choose,
    reserved_and,
    softmax,
    tokens_of,
)


def moba(moment: Moment) -> tuple[list[list[int]], Array]:
    """Every query head has its own best pages by <q_g, c_P>: pages by head, output [G, Dv]."""
    scores = centroids(moment) @ moment.q.T
    pages = [choose(moment, scores[:, head]) for head in range(len(moment.q))]
    outs = [attend(moment, chosen)[0][head] for head, chosen in enumerate(pages)]
    return pages, np.array(outs)


def retro_infer(moment: Moment) -> tuple[list[int], Array]:
    """Best pages by <mean query, c_P> exact; a page that was left out counts as B equal keys.

    It adds ``B e^{q.c}`` below and ``e^{q.c} sum v`` above the line.
    """
    pages = choose(moment, centroids(moment) @ moment.q.mean(axis=0))
    tokens = tokens_of(moment, pages)
    others = [page for page in range(moment.num_finished) if page not in pages]
    scale = moment.decode.scale or moment.q.shape[1] ** -0.5
    block = moment.decode.block_size
    exact = moment.logits[:, tokens]
    rough = scale * (moment.q @ centroids(moment)[others].T)
    top = np.concatenate([exact, rough], axis=1).max(axis=1, keepdims=True)
    exact, rough = np.exp(exact - top), np.exp(rough - top)
    sums = moment.finished(moment.values).sum(axis=1)[others]
    above = exact @ moment.values[tokens] + rough @ sums
    below = exact.sum(axis=1) + block * rough.sum(axis=1)
    return pages, above / below[:, None]


def nsa(moment: Moment, weights: NsaWeights, window_pages: int) -> tuple[list[int], Array]:
    """Compressed, selected and window attention, each times its gate."""
    pages = choose(moment, nsa_scores(moment, weights))
    recent = range(max(moment.num_pages - window_pages, 0), moment.num_pages)
    _, compressed = nsa_compressed(moment, weights)
    selected, _ = attend(moment, pages)
    window, _ = attend(moment, reserved_and(moment, list(recent)))
    gates = nsa_gates(moment, weights)[..., None]
    out: Array = gates[0] * compressed + gates[1] * selected + gates[2] * window
    return pages, out


def sparq(moment: Moment, count: int) -> tuple[list[int], Array]:
    """Masses on the query's largest channels; a_g attention + (1 - a_g) mean value."""
    channels = largest_channels(moment, count)
    strong = moment.q[:, channels]
    kept = np.abs(strong).sum(axis=1) / np.abs(moment.q).sum(axis=1)
    heat = np.sqrt(moment.q.shape[1] * kept)
    weights = softmax(strong @ moment.keys[:, channels].T / heat[:, None])
    masses = moment.by_page(weights)
    pages = choose(moment, masses.mean(axis=0)[: moment.num_finished])
    read = masses[:, pages].sum(axis=1, keepdims=True)
    mean = moment.finished(moment.values).mean(axis=(0, 1))
    out: Array = read * attend(moment, pages)[0] + (1.0 - read) * mean
    return pages, out


def duo_attention(moment: Moment, retrieval: set[int], window_pages: int) -> list[int]:
    """All pages, or sinks and a window."""
    if moment.decode.head in retrieval:
        return list(range(moment.num_pages))
    recent = range(max(moment.num_pages - window_pages, 0), moment.num_pages)
    return reserved_and(moment, list(recent))
