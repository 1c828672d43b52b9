"""Dense decode attention in torch: what sparse attention has to beat."""

import numpy as np
import numpy.typing as npt
import torch


def attend_by_sdpa(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """torch's fused attention over [KV heads, requests, query heads or tokens, width]."""
    return torch.nn.functional.scaled_dot_product_attention(query, key, value)


def attend_by_matmul(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Two batched products and a softmax for each KV head; one batch of all would copy the keys."""
    heads = []
    for q, k, v in zip(query, key, value, strict=True):
        logits = torch.bmm(q, k.transpose(1, 2)) * q.shape[-1] ** -0.5
        heads.append(torch.bmm(torch.softmax(logits, dim=-1), v))
    return torch.stack(heads)


def set_threads(count: int) -> None:
    torch.set_num_threads(count)


def shared_tensor(array: npt.NDArray[np.float32]) -> torch.Tensor:
    """The array's own memory as a tensor."""
    return torch.from_numpy(array)
