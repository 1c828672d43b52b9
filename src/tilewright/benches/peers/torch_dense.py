"""Dense decode attention in torch: what sparse attention has to beat."""

import numpy as np
import numpy.typing as npt
import torch

__all__ = ("attend_by_matmul", "attend_by_sdpa", "set_threads", "shared_tensor")


def attend_by_sdpa(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """torch's fused attention. Rows come first: [rows, query heads or tokens, width]."""
    return torch.nn.functional.scaled_dot_product_attention(
        query[:, None], key[:, None], value[:, None]
    )[:, 0]


def attend_by_matmul(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Two batched products and a softmax."""
    logits = torch.bmm(query, key.transpose(1, 2)) * query.shape[-1] ** -0.5
    return torch.bmm(torch.softmax(logits, dim=-1), value)


def set_threads(count: int) -> None:
    torch.set_num_threads(count)


def shared_tensor(array: npt.NDArray[np.float32]) -> torch.Tensor:
    """The array's own memory as a tensor."""
    return torch.from_numpy(array)
