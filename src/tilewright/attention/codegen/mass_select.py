"""Helpers of kernels that take the fewest pages whose weights reach a share of the whole."""

__all__ = ("MASS_HELPERS",)

MASS_HELPERS = '''\
@triton.jit
def keep_weights(scores, weights, stride, num_pages, TILE: tl.constexpr):
    """Scores as weights: a negative one and NaN count as 0."""
    for start in range(0, num_pages, TILE):
        page = start + tl.arange(0, TILE)
        there = page < num_pages
        score = tl.load(scores + page * stride, mask=there, other=0).to(tl.float32)
        tl.store(weights + page * stride, tl.where(score > 0.0, score, 0.0), mask=there)
    tl.debug_barrier()  # other threads of the program read them


@triton.jit
def keep_shares(scores, weights, stride, first, stop, TILE: tl.constexpr):
    """Softmax over the candidates; NaN is minus infinity."""
    largest = tl.full((), float("-inf"), tl.float32)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        score = tl.load(scores + page * stride, mask=page < stop, other=0).to(tl.float32)
        counts = (page < stop) & (score == score)
        largest = tl.maximum(largest, tl.max(tl.where(counts, score, float("-inf")), 0))
    largest = tl.where(largest == float("-inf"), 0.0, largest)
    total = tl.zeros((), tl.float32)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        score = tl.load(scores + page * stride, mask=page < stop, other=0).to(tl.float32)
        counts = (page < stop) & (score == score)
        total += tl.sum(tl.where(counts, tl.exp(score - largest), 0.0), 0)
    total = tl.where(total == 0.0, 1.0, total)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        score = tl.load(scores + page * stride, mask=page < stop, other=0).to(tl.float32)
        share = tl.where(score == score, tl.div_rn(tl.exp(score - largest), total), 0.0)
        tl.store(weights + page * stride, share, mask=page < stop)
    tl.debug_barrier()  # other threads of the program read them


@triton.jit
def sum_weights(weights, stride, first, stop, TILE: tl.constexpr):
    """In float64: which page is the last one in must not hang on rounding of the sum."""
    total = tl.zeros((), tl.float64)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        weight = tl.load(weights + page * stride, mask=page < stop, other=0)
        total += tl.sum(weight.to(tl.float64), 0)
    return total


@triton.jit
def last_key_reached(weights, stride, first, stop, missing, TILE: tl.constexpr):
    """The largest key such that the weights from it on are ``missing`` at least."""
    limit = tl.zeros((), tl.int64)
    digit = tl.arange(0, 16).to(tl.int64)
    for place in range(8):
        trial = limit + (digit << (28 - 4 * place))
        reached = tl.zeros((16,), tl.float64)
        for start in range(first, stop, TILE):
            page = start + tl.arange(0, TILE)
            weight = tl.load(weights + page * stride, mask=page < stop, other=0)
            key = tl.where(page < stop, ordered_key(weight), 0)
            counted = key[None, :] >= trial[:, None]
            reached += tl.sum(tl.where(counted, weight.to(tl.float64)[None, :], 0.0), 1)
        largest = tl.sum((reached >= missing).to(tl.int64), 0) - 1  # a larger digit has less
        limit += tl.maximum(largest, 0) << (28 - 4 * place)
    return limit


@triton.jit
def count_for_mass(weights, stride, first, stop, missing, TILE: tl.constexpr):
    """The fewest pages, largest weight first, whose weights are ``missing`` at least."""
    limit = last_key_reached(weights, stride, first, stop, missing, TILE)
    count = tl.zeros((), tl.int32)
    above = tl.zeros((), tl.float64)
    each = tl.zeros((), tl.float64)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        weight = tl.load(weights + page * stride, mask=page < stop, other=0).to(tl.float64)
        key = load_keys(weights, stride, page, page < stop)
        count += tl.sum((key > limit).to(tl.int32), 0)
        above += tl.sum(tl.where(key > limit, weight, 0.0), 0)
        each = tl.maximum(each, tl.max(tl.where(key == limit, weight, 0.0), 0))
    equals = tl.ceil((missing - above) / tl.where(each == 0.0, 1.0, each))
    equals = tl.where(above + (equals - 1.0) * each >= missing, equals - 1.0, equals)
    equals = tl.where(above + equals * each < missing, equals + 1.0, equals)
    count += tl.where(each == 0.0, 0.0, equals).to(tl.int32)
    return tl.where(missing > 0.0, count, 0)
'''
