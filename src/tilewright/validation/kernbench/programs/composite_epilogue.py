"""Composites with epilogues of three scopes: a scale a K tile, bias and relu, one at the end."""

import numpy as np
from kernbench.policy.placement.dp import DPPolicy

M, K, N = 40, 128, 48
RESULTS = {}


def epilogue_kernel(a_ptr, b_ptr, bias_ptr, out_ptr, M, K, N, tl, SCALE=0.25):
    a = tl.load(a_ptr, (M, K), "f16")
    b = tl.ref(b_ptr, (K, N), "f16")
    bias = tl.load(bias_ptr, (1, N), "f16")
    stages = [("scale", SCALE, "k_tile"), ("bias", bias), "relu", ("scale", 2.0, "kernel")]
    tile = (32, 64, 32)
    done = tl.composite(
        op="gemm", a=a, b=b, out_ptr=out_ptr, epilogue=stages, acc_dtype="f32", tile_shape=tile
    )
    tl.wait(done)


def run(torch):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((M, K)).astype(np.float16)
    w = rng.standard_normal((K, N)).astype(np.float16)
    shift = rng.standard_normal((1, N)).astype(np.float16)
    one = DPPolicy(num_pes=1, num_cubes=1)
    a = torch.empty((M, K), dp=one, name="a")
    b = torch.empty((K, N), dp=one, name="b")
    bias = torch.empty((1, N), dp=one, name="bias")
    out = torch.zeros((M, N), dp=one, name="out")
    fused = torch.zeros((M, N), dp=one, name="fused")
    for tensor, values in ((a, x), (b, w), (bias, shift)):
        tensor.copy_(torch.from_numpy(values))
    torch.launch("epilogue", epilogue_kernel, a, b, bias, out, M, K, N)
    torch.launch("epilogue", epilogue_kernel, a, b, bias, fused, M, K, N, SCALE=0.5)
    RESULTS.update(x=x, w=w, bias=shift, out=out.numpy(), fused=fused.numpy())
