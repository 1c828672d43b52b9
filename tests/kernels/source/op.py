"""One function of Triton's language at a time, on blocks that a kernel loads and stores."""

import triton
import triton.language as tl


@triton.jit
def unary_kernel(x_ptr, out_ptr, FUNCTION: tl.constexpr, N: tl.constexpr, M: tl.constexpr):
    result = FUNCTION(tl.load(x_ptr + tl.arange(0, N)))
    tl.store(out_ptr + tl.arange(0, M), tl.reshape(result, [M]))


@triton.jit
def binary_kernel(x_ptr, y_ptr, out_ptr, FUNCTION: tl.constexpr, N: tl.constexpr, M: tl.constexpr):
    n = tl.arange(0, N)
    result = FUNCTION(tl.load(x_ptr + n), tl.load(y_ptr + n))
    tl.store(out_ptr + tl.arange(0, M), tl.reshape(result, [M]))


@triton.jit
def ternary_kernel(
    x_ptr, y_ptr, z_ptr, out_ptr, FUNCTION: tl.constexpr, N: tl.constexpr, M: tl.constexpr
):
    n = tl.arange(0, N)
    result = FUNCTION(tl.load(x_ptr + n), tl.load(y_ptr + n), tl.load(z_ptr + n))
    tl.store(out_ptr + tl.arange(0, M), tl.reshape(result, [M]))


@triton.jit
def tile_kernel(
    x_ptr, out_ptr, FUNCTION: tl.constexpr, R: tl.constexpr, C: tl.constexpr, M: tl.constexpr
):
    offsets = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    result = FUNCTION(tl.load(x_ptr + offsets))
    tl.store(out_ptr + tl.arange(0, M), tl.reshape(result, [M]))


@triton.jit
def two_tile_kernel(
    x_ptr, y_ptr, out_ptr, FUNCTION: tl.constexpr, R: tl.constexpr, C: tl.constexpr,
    M: tl.constexpr,
):  # fmt: skip
    offsets = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    result = FUNCTION(tl.load(x_ptr + offsets), tl.load(y_ptr + offsets))
    tl.store(out_ptr + tl.arange(0, M), tl.reshape(result, [M]))


# operators


@triton.jit
def op_add(x, y):
    return x + y


@triton.jit
def op_sub(x, y):
    return x - y


@triton.jit
def op_mul(x, y):
    return x * y


@triton.jit
def op_div(x, y):
    return x / y


@triton.jit
def op_floordiv(x, y):
    return x // y


@triton.jit
def op_mod(x, y):
    return x % y


@triton.jit
def op_and(x, y):
    return x & y


@triton.jit
def op_or(x, y):
    return x | y


@triton.jit
def op_xor(x, y):
    return x ^ y


@triton.jit
def op_not(x):
    return ~x


@triton.jit
def op_neg(x):
    return -x


@triton.jit
def op_shl(x, y):
    return x << y


@triton.jit
def op_shr(x, y):
    return x >> y


@triton.jit
def op_eq(x, y):
    return x == y


@triton.jit
def op_ne(x, y):
    return x != y


@triton.jit
def op_lt(x, y):
    return x < y


@triton.jit
def op_le(x, y):
    return x <= y


@triton.jit
def op_gt(x, y):
    return x > y


@triton.jit
def op_ge(x, y):
    return x >= y


# functions of elements


@triton.jit
def fn_abs(x):
    return tl.abs(x)


@triton.jit
def fn_ceil(x):
    return tl.ceil(x)


@triton.jit
def fn_cos(x):
    return tl.cos(x)


@triton.jit
def fn_erf(x):
    return tl.erf(x)


@triton.jit
def fn_exp(x):
    return tl.exp(x)


@triton.jit
def fn_exp2(x):
    return tl.exp2(x)


@triton.jit
def fn_floor(x):
    return tl.floor(x)


@triton.jit
def fn_log(x):
    return tl.log(x)


@triton.jit
def fn_log2(x):
    return tl.log2(x)


@triton.jit
def fn_rsqrt(x):
    return tl.rsqrt(x)


@triton.jit
def fn_sigmoid(x):
    return tl.sigmoid(x)


@triton.jit
def fn_sin(x):
    return tl.sin(x)


@triton.jit
def fn_sqrt(x):
    return tl.sqrt(x)


@triton.jit
def fn_sqrt_rn(x):
    return tl.sqrt_rn(x)


@triton.jit
def fn_cdiv(x, y):
    return tl.cdiv(x, y)


@triton.jit
def fn_div_rn(x, y):
    return tl.div_rn(x, y)


@triton.jit
def fn_fdiv(x, y):
    return tl.fdiv(x, y)


@triton.jit
def fn_umulhi(x, y):
    return tl.umulhi(x, y)


@triton.jit
def fn_maximum(x, y):
    return tl.maximum(x, y)


@triton.jit
def fn_minimum(x, y):
    return tl.minimum(x, y)


@triton.jit
def fn_maximum_nan(x, y):
    return tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def fn_minimum_nan(x, y):
    return tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def fn_clamp(x, y, z):
    return tl.clamp(x, y, z)


@triton.jit
def fn_fma(x, y, z):
    return tl.fma(x, y, z)


@triton.jit
def fn_where(x, y, z):
    return tl.where(x > 0, y, z)


@triton.jit
def fn_cast_f16(x):
    return x.to(tl.float16)


@triton.jit
def fn_cast_f32(x):
    return tl.cast(x, tl.float32)


@triton.jit
def fn_cast_i8(x):
    return x.to(tl.int8)


@triton.jit
def fn_bitcast(x):
    return x.to(tl.int32, bitcast=True)


# blocks from blocks


@triton.jit
def fn_trans(x):
    return tl.trans(x)


@triton.jit
def fn_permute(x):
    return tl.permute(tl.expand_dims(x, 1), (2, 1, 0))


@triton.jit
def fn_reshape(x):
    return tl.reshape(x, (16, 8))


@triton.jit
def fn_view(x):
    return tl.view(x, (4, 32))


@triton.jit
def fn_ravel(x):
    return tl.ravel(x)


@triton.jit
def fn_broadcast_to(x):
    return tl.broadcast_to(tl.sum(x, 1, keep_dims=True), (8, 16))


@triton.jit
def fn_flip(x):
    return tl.flip(x, 1)


@triton.jit
def fn_split(x):
    even, odd = tl.split(tl.reshape(x, (8, 8, 2)))
    return even * 2 + odd


@triton.jit
def fn_join(x, y):
    return tl.join(x, y)


@triton.jit
def fn_interleave(x, y):
    return tl.interleave(x, y)


@triton.jit
def fn_cat(x, y):
    return tl.cat(x, y, dim=1)


@triton.jit
def fn_dot(x, y):
    return tl.dot(x, tl.trans(y))


@triton.jit
def fn_gather(x, y):
    return tl.gather(x, y.to(tl.int32) & 15, axis=1)


# reductions, scans and sorts


@triton.jit
def fn_sum(x):
    return tl.sum(x, axis=1)


@triton.jit
def fn_sum_all(x):
    return tl.sum(x, keep_dims=True)


@triton.jit
def fn_max(x):
    return tl.max(x, axis=0)


@triton.jit
def fn_min(x):
    return tl.min(x, axis=1, keep_dims=True)


@triton.jit
def fn_max_index(x):
    value, index = tl.max(x, axis=1, return_indices=True)
    return value * 100 + index


@triton.jit
def fn_argmax(x):
    return tl.argmax(x, axis=1)


@triton.jit
def fn_argmin(x):
    return tl.argmin(x, axis=0)


@triton.jit
def fn_xor_sum(x):
    return tl.xor_sum(x, axis=1)


@triton.jit
def fn_reduce_or(x):
    return tl.reduce_or(x, axis=0)


@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def fn_reduce(x):
    return tl.reduce(x, 1, larger)


@triton.jit
def fn_cumsum(x):
    return tl.cumsum(x, axis=1)


@triton.jit
def fn_cumsum_reverse(x):
    return tl.cumsum(x, axis=0, reverse=True)


@triton.jit
def fn_cumprod(x):
    return tl.cumprod(x, axis=1)


@triton.jit
def fn_associative_scan(x):
    return tl.associative_scan(x, 1, larger)


@triton.jit
def fn_sort(x):
    return tl.sort(x)


@triton.jit
def fn_sort_descending(x):
    return tl.sort(x, descending=True)


@triton.jit
def fn_topk(x):
    return tl.topk(x, 4)


@triton.jit
def fn_softmax(x):
    return tl.softmax(x, dim=1)


@triton.jit
def fn_histogram(x):
    return tl.histogram(x, 16)


@triton.jit
def fn_rand(x):
    return tl.rand(17, x)


@triton.jit
def fn_randn(x):
    return tl.randn(17, x)


@triton.jit
def fn_randint(x):
    return tl.randint(17, x)


@triton.jit
def fn_swizzle2d(x, y):
    i, j = tl.swizzle2d(x, y, 16, 8, 3)
    return i * 1000 + j


@triton.jit
def fn_zeros_full_arange(x):
    return x + tl.zeros([128], tl.float32) + tl.full([128], 2.5, tl.float32) + tl.arange(0, 128)


# the rest of the language


@triton.jit
def fn_add(x, y):
    return tl.add(x, y)


@triton.jit
def fn_sub(x, y):
    return tl.sub(x, y)


@triton.jit
def fn_mul(x, y):
    return tl.mul(x, y)


@triton.jit
def fn_broadcast(x, y):
    left, right = tl.broadcast(tl.sum(x, 1, keep_dims=True), y)
    return left + right


@triton.jit
def fn_squeeze(x):
    return tl.squeeze(tl.unsqueeze(x, 1), 1) + tl.zeros_like(x)


@triton.jit
def fn_bitonic_merge(x, y):
    rising = tl.sort(x)
    falling = tl.sort(y, descending=True)
    return tl.bitonic_merge(tl.cat(rising, falling, dim=1))


@triton.jit
def fn_rand4x(x):
    a, b, c, d = tl.rand4x(17, x)
    return a + b - c * d


@triton.jit
def fn_randn4x(x):
    a, b, c, d = tl.randn4x(17, x)
    return a + b - c * d


@triton.jit
def fn_randint4x(x):
    a, b, c, d = tl.randint4x(17, x, n_rounds=7)
    return a ^ b ^ c ^ d


@triton.jit
def fn_philox(x, y):
    a, b, c, d = tl.philox(17, x, y, x, y)
    return a ^ b ^ c ^ d


@triton.jit
def fn_uniform(x):
    return tl.uint_to_uniform_float(tl.randint(5, x))


@triton.jit
def fn_normal(x, y):
    left, right = tl.pair_uniform_to_normal(tl.rand(3, x), tl.rand(4, y))
    return left - right


@triton.jit
def fn_hints(x):
    x = tl.multiple_of(x, 1)
    x = tl.max_contiguous(x, 1)
    x = tl.max_constancy(x, 1)
    tl.assume(tl.sum(x, 0) < 1000000000)
    tl.static_assert(x.shape[0] == 128, "128 elements")
    tl.device_assert(x >= 0, "counts are not negative")
    tl.debug_barrier()
    for step in tl.static_range(3):
        x += step
    for step in tl.range(0, 4, 2, num_stages=2):
        x += step
    return x


@triton.jit
def fn_methods(x):
    y = x.to(tl.float32).abs().sqrt() + x.exp().log()
    y = y.reshape([8, 16]).trans().reshape([128]) + x.sum(0) * x.max(0)
    return y.cumsum(0)


@triton.jit
def fn_scalars(x):
    n = tl.sum(x, 0)
    bound = min(n, 50) + max(n, 60)
    y = x + tl.to_tensor(3) + n % 7 - bound // 11
    return tl.where(n > 10 and bound != 0, y, -y)


@triton.jit
def scaled_dot_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr,
    K: tl.constexpr, LEFT: tl.constexpr, RIGHT: tl.constexpr, K_A: tl.constexpr, K_B: tl.constexpr,
):  # fmt: skip
    m, n, g = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    a = tl.load(a_ptr + m[:, None] * K_A + tl.arange(0, K_A)[None, :])
    b = tl.load(b_ptr + tl.arange(0, K_B)[:, None] * N + n[None, :])
    a_scale = tl.load(a_scale_ptr + m[:, None] * (K // 32) + g[None, :])
    b_scale = tl.load(b_scale_ptr + n[:, None] * (K // 32) + g[None, :])
    c = tl.dot_scaled(a, a_scale, LEFT, b, b_scale, RIGHT)
    tl.store(out_ptr + m[:, None] * N + n[None, :], c)


@triton.jit
def atomic_load_store_kernel(x_ptr, out_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    x = tl.atomic_load(x_ptr + n)
    tl.atomic_store(out_ptr + n, x * 2)


@triton.jit
def descriptor_function_kernel(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, [R, C], [C, 1], [R, C])
    target = tl.make_tensor_descriptor(out_ptr, [R, C], [C, 1], [R, C])
    tl.store_tensor_descriptor(target, [0, 0], tl.load_tensor_descriptor(source, [0, 0]) + 1)
