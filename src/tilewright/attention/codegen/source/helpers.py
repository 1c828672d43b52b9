"""Functions that kernels call: those of a group are printed together, if one of them is called.

A helper calls those of its group and of earlier ones.
"""

LEAST_KEY = -(2**31)
"""The key of a page that is no candidate: no score has it."""
LEAST_RANK = -9223372036854775807

ROUND_HELPERS = '''\
@triton.jit
def round_to_e4m3(value):
    """The nearest number with 4 bits of exponent and 3 of mantissa, ties to even, at most 448."""
    held = tl.where(value > 448.0, 448.0, tl.where(value < -448.0, -448.0, value))
    bits = held.to(tl.int32, bitcast=True)
    bits = (bits + 524287 + ((bits >> 20) & 1)) & -1048576  # 20 bits of mantissa go
    small = (held + 24576.0) - 24576.0  # below 2**-6 the steps are 2**-9
    rounded = tl.where(tl.abs(held) < 0.015625, small, bits.to(tl.float32, bitcast=True))
    return tl.where(value == value, rounded, value)


@triton.jit
def round_to_e5m2(value):
    """The nearest number with 5 bits of exponent and 2 of mantissa, ties to even, at most 57344."""
    held = tl.where(value > 57344.0, 57344.0, tl.where(value < -57344.0, -57344.0, value))
    bits = held.to(tl.int32, bitcast=True)
    bits = (bits + 1048575 + ((bits >> 21) & 1)) & -2097152  # 21 bits of mantissa go
    small = (held + 192.0) - 192.0  # below 2**-14 the steps are 2**-16
    rounded = tl.where(tl.abs(held) < 6.103515625e-05, small, bits.to(tl.float32, bitcast=True))
    return tl.where(value == value, rounded, value)
'''
"""Hardware and interpreters differ in what they do beyond the largest number, and in ties."""

SELECT_HELPERS = '''\
@triton.jit
def ordered_key(score):
    """A whole number in 0 .. 2**32 - 1 that orders as the score does; NaN is minus infinity."""
    score = tl.where(score == score, score, float("-inf"))
    score = tl.where(score == 0.0, 0.0, score)  # -0.0 equals 0.0
    bits = score.to(tl.int32, bitcast=True)
    ordered = tl.where(bits < 0, -2147483648 - bits, bits)
    return ordered.to(tl.int64) + 2147483648


@triton.jit
def load_keys(scores, stride, page, there):
    """Keys of pages; 0, which no score has, where a page does not count."""
    score = tl.load(scores + page * stride, mask=there, other=0).to(tl.float32)
    return tl.where(there, ordered_key(score), 0)


@triton.jit
def count_at_least(scores, stride, first, stop, key, TILE: tl.constexpr):
    """Pages in first .. stop whose key is at least ``key``, which is above 0."""
    count = tl.zeros((), tl.int32)
    for start in range(first, stop, TILE):
        page = start + tl.arange(0, TILE)
        count += tl.sum((load_keys(scores, stride, page, page < stop) >= key).to(tl.int32), 0)
    return count


@triton.jit
def last_key_in(scores, stride, first, stop, count, TILE: tl.constexpr):
    """The largest key that ``count`` pages reach, found from its first hexadecimal digit on."""
    limit = tl.zeros((), tl.int64)
    digit = tl.arange(0, 16).to(tl.int64)
    for place in range(8):
        trial = limit + (digit << (28 - 4 * place))
        reached = tl.zeros((16,), tl.int32)
        for start in range(first, stop, TILE):
            page = start + tl.arange(0, TILE)
            key = load_keys(scores, stride, page, page < stop)
            reached += tl.sum((key[None, :] >= trial[:, None]).to(tl.int32), 1)
        largest = tl.sum((reached >= count).to(tl.int64), 0) - 1  # fewer reach a larger digit
        limit += tl.maximum(largest, 0) << (28 - 4 * place)
    return limit


@triton.jit
def mark_best(scores, chosen, stride, first, stop, num_pages, count, TILE: tl.constexpr):
    """Mark the ``count`` best of first .. stop, the lower page among equals, and all outside."""
    limit = last_key_in(scores, stride, first, stop, count, TILE)
    owed = count - count_at_least(scores, stride, first, stop, limit + 1, TILE)
    for start in range(0, num_pages, TILE):
        page = start + tl.arange(0, TILE)
        candidate = (page >= first) & (page < stop)
        key = load_keys(scores, stride, page, candidate)
        equal = (candidate & (key == limit)).to(tl.int32)
        turn = tl.cumsum(equal, 0)
        best = candidate & ((key > limit) | ((equal != 0) & (turn <= owed)))
        owed -= tl.sum(equal, 0)
        mark = (best | ((page < num_pages) & (candidate == 0))).to(tl.int8)
        tl.store(chosen + page * stride, mark, mask=page < num_pages)
'''

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

KEY_HELPERS = '''\
@triton.jit
def signed_key(score):
    """An int32 that orders as the score does; NaN is minus infinity."""
    score = tl.where(score == score, score, float("-inf"))
    score = tl.where(score == 0.0, 0.0, score)  # -0.0 equals 0.0
    bits = score.to(tl.int32, bitcast=True)
    return tl.where(bits < 0, -2147483648 - bits, bits)
'''

BLOCK_HELPERS = '''\
@triton.jit
def last_key_of(keys, count, PAGES: tl.constexpr):
    """The largest key that ``count`` of the keys reach; above all of them if that is none."""
    ordered = tl.sort(keys, descending=True)
    is_in = tl.arange(0, PAGES) < tl.broadcast_to(count, (PAGES,))
    return tl.min(tl.where(is_in, ordered, 2147483647), 0)


@triton.jit
def best_of(keys, count, PAGES: tl.constexpr):
    """Which keys are the ``count`` largest: the first ones among equals."""
    limit = last_key_of(keys, count, PAGES)
    equal = keys == limit
    owed = count - tl.sum((keys > limit).to(tl.int32), 0)
    turn = tl.cumsum(equal.to(tl.int32), 0)
    return (keys > limit) | (equal & (turn <= owed))
'''

SEGMENT_HELPERS = f'''\
@triton.jit
def ranks_of(score, page, is_candidate):
    """Of pages: an int64 that orders by score, and equal scores by page, the first one highest."""
    rank = signed_key(score).to(tl.int64) * 4294967296 + (4294967295 - page.to(tl.int64))
    return tl.where(is_candidate, rank, {LEAST_RANK})


@triton.jit
def best_of_both(best, other, KEPT: tl.constexpr):
    """The KEPT highest of twice as many, in order."""
    return tl.topk(tl.reshape(tl.join(best, other), (2 * KEPT,)), KEPT)


@triton.jit
def best_in(
    scores, stride, factor, shift, first, stop, num_own, KEPT: tl.constexpr, TILE: tl.constexpr
):
    """The KEPT highest ranks of candidates first .. stop; a page is own * factor + shift."""
    best = tl.full((KEPT,), {LEAST_RANK}, tl.int64)
    for start in range(0, num_own, TILE):
        own = start + tl.arange(0, TILE)
        page = own * factor + shift
        there = own < num_own
        score = tl.load(scores + own * stride, mask=there, other=0).to(tl.float32)
        ranks = ranks_of(score, page, there & (page >= first) & (page < stop))
        best = best_of_both(best, tl.topk(ranks, KEPT), KEPT)
    return best


@triton.jit
def last_rank_of(best, count, num_candidates, KEPT: tl.constexpr):
    """The lowest rank that is in, as a block of one; below all if every candidate is in."""
    is_in = tl.arange(0, KEPT) < tl.broadcast_to(count, (KEPT,))
    last = tl.min(tl.where(is_in, best, 9223372036854775807), 0)
    return tl.broadcast_to(tl.where(count >= num_candidates, {LEAST_RANK}, last), (1,))


@triton.jit
def mark_from(
    scores, stride, marks, columns, factor, shift, first, stop, num_own, last, TILE: tl.constexpr
):
    """Mark candidates whose rank is ``last`` or higher, and all pages that are none."""
    for start in range(0, num_own, TILE):
        own = start + tl.arange(0, TILE)
        page = own * factor + shift
        there = own < num_own
        candidate = (page >= first) & (page < stop)
        score = tl.load(scores + own * stride, mask=there, other=0).to(tl.float32)
        best = ranks_of(score, page, candidate) >= last
        mark = ((best & candidate) | (candidate == 0)).to(tl.int8)
        tl.store(marks + own * columns, mark, mask=there)
'''

_PARTS = '''\
@triton.jit
def {narrow}_parts(value):
    """A float32 [1, r, c] as the sum of {narrow} numbers [4, r, c], and the unit they count in.

    Three of them have all its bits. The unit is a power of two that brings the largest number near
    the end of the narrow range, so that no part falls below its beginning.
    """
    largest = tl.max(tl.max(tl.abs(value), 2, keep_dims=True), 1, keep_dims=True)
    largest = tl.where(largest == 0.0, 1.0, largest)
    unit = tl.exp2(tl.floor(tl.log2(largest)) - 14.0)
    value = tl.div_rn(value, unit)
    high = value.to(tl.{narrow})
    value = value - high.to(tl.float32)
    middle = value.to(tl.{narrow})
    low = (value - middle.to(tl.float32)).to(tl.{narrow})
    part = tl.arange(0, 4)[:, None, None]
    parts = tl.where(part == 0, high, tl.where(part == 1, middle, low))
    return tl.where(part == 3, 0.0, parts).to(tl.{narrow}), unit
'''
PART_HELPERS = tuple(_PARTS.format(narrow=narrow) for narrow in ("float16", "bfloat16"))

GROUPS = (
    ROUND_HELPERS,
    SELECT_HELPERS,
    MASS_HELPERS,
    KEY_HELPERS,
    BLOCK_HELPERS,
    SEGMENT_HELPERS,
    *PART_HELPERS,
)
