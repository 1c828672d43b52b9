"""Cross-entropy of logits: a running log-sum-exp over blocks, the label's logit by its address."""

import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    logits_ptr, labels_ptr, loss_ptr, n_classes, IGNORED: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    label = tl.load(labels_ptr + row)
    if label == IGNORED:
        tl.store(loss_ptr + row, 0.0)
    else:
        largest = -float("inf")
        total = 0.0
        for start in range(0, n_classes, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            x = tl.load(
                logits_ptr + row * n_classes + columns,
                mask=columns < n_classes,
                other=-float("inf"),
            ).to(tl.float32)
            new = tl.maximum(largest, tl.max(x, 0))
            total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), 0)
            largest = new
        chosen = tl.load(logits_ptr + row * n_classes + label).to(tl.float32)
        tl.store(loss_ptr + row, largest + tl.log(total) - chosen)
