"""Train the recall model that ships with the package: ``python tools/train_recall.py``.

One to two minutes on one core. The model is the package's own forward pass on torch arrays; only
the attention step is another one, over many sequences at once, so that gradients can flow.
"""

import argparse
import hashlib
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn import Parameter
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from tilewright.models import ModelWeights, logits_of, run_layers
from tilewright.models.recall import RECALL_SHAPE, SMEAR, draw_recall
from tilewright.models.safetensors.model import NAMES
from tilewright.models.weights import DenseFfn, GqaAttention, LayerWeights

SEED = 1
STAGES = ((16, 300), (32, 200), (64, 200), (128, 200))  # pairs of a sequence, steps
BATCH_PAIRS = 512  # of all sequences of a step
MOST_ASKED = 64
RATE = 3e-3
OUTPUT = Path(__file__).parents[1] / "src/tilewright/models/data/recall.safetensors"
SHAPE = RECALL_SHAPE
QUERY_ROWS, KEY_ROWS = SHAPE.query_heads * SHAPE.head_dim, SHAPE.kv_heads * SHAPE.head_dim


@dataclass(frozen=True)
class Trained:
    """The weights, and what the shares of smeared keys come from by a sigmoid."""

    weights: ModelWeights
    smear: Parameter  # [layers, KV heads]

    def parameters(self) -> list[Parameter]:
        found = [self.smear, self.weights.embedding, self.weights.norm, self.weights.output]
        for layer in self.weights.layers:
            found += [layer.attention_norm, layer.ffn_norm]
            found += [layer.attention.query_key_value, layer.attention.output]  # type: ignore[union-attr]
            found += [layer.ffn.gate_up, layer.ffn.down]  # type: ignore[union-attr]
        return found


def new_model(seed: int) -> Trained:
    generator = torch.Generator().manual_seed(seed)

    def drawn(rows: int, columns: int, size: float = 1.0) -> Parameter:
        return Parameter(torch.randn(rows, columns, generator=generator) * size * columns**-0.5)

    def ones() -> Parameter:
        return Parameter(torch.ones(SHAPE.hidden))

    def layer() -> LayerWeights:
        attention = GqaAttention(
            drawn(QUERY_ROWS + 2 * KEY_ROWS, SHAPE.hidden),
            None,
            None,
            drawn(SHAPE.hidden, QUERY_ROWS, size=0.5),
        )
        ffn = DenseFfn(drawn(2 * SHAPE.ffn, SHAPE.hidden), drawn(SHAPE.hidden, SHAPE.ffn, size=0.5))
        return LayerWeights(ones(), attention, ones(), ffn)

    weights = ModelWeights(
        SHAPE,
        drawn(SHAPE.vocab, SHAPE.hidden, size=SHAPE.hidden**0.5),
        tuple(layer() for _ in range(SHAPE.layers)),
        ones(),
        drawn(SHAPE.vocab, SHAPE.hidden),
    )
    return Trained(weights, Parameter(torch.zeros(SHAPE.layers, SHAPE.kv_heads)))


class BatchAttention:
    """Causal attention of ``batch`` sequences that lie one behind the other."""

    def __init__(self, smear: torch.Tensor, batch: int) -> None:
        self._smear = smear
        self._batch = batch

    def __call__(
        self, layer: int, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor | None
    ) -> torch.Tensor:
        if values is None:
            raise TypeError("grouped-query attention has values")
        query = self._by_sequence(queries.flatten(1, 2))
        key, value = self._by_sequence(keys), self._by_sequence(values)
        earlier = torch.nn.functional.pad(key, (0, 0, 1, 0))[:, :, :-1]
        share = self._smear[layer][:, None, None]
        key = key + share * (earlier - key)
        found = scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return found.transpose(1, 2).reshape(queries.shape)

    def _by_sequence(self, heads: torch.Tensor) -> torch.Tensor:
        """[batch * tokens, heads, width] -> [batch, heads, tokens, width]."""
        return heads.reshape(self._batch, -1, *heads.shape[1:]).transpose(1, 2)


def loss_of(model: Trained, rng: np.random.Generator, num_pairs: int) -> tuple[torch.Tensor, float]:
    """The loss of one batch, and the share of its answers that are right."""
    batch = max(BATCH_PAIRS // num_pairs, 8)
    asked_for = min(num_pairs, MOST_ASKED)
    tasks = [draw_recall(rng, num_pairs=num_pairs, num_asked=asked_for) for _ in range(batch)]
    length = len(tasks[0].tokens)
    tokens = np.concatenate([task.tokens for task in tasks])
    places = np.tile(np.arange(length), batch)
    attend = BatchAttention(torch.sigmoid(model.smear), batch)
    stream = run_layers(model.weights, tokens, places, attend)
    asked = np.concatenate([task.asked + index * length for index, task in enumerate(tasks)])
    answers = torch.from_numpy(np.concatenate([task.answers for task in tasks]))
    logits = logits_of(model.weights, stream[torch.from_numpy(asked)])
    right = (logits.argmax(-1) == answers).float().mean()
    return cross_entropy(logits, answers), float(right)


def train(model: Trained, rng: np.random.Generator) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    total = sum(steps for _, steps in STAGES)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=total)
    for num_pairs, steps in STAGES:
        start = time.perf_counter()
        for _ in range(steps):
            loss, right = loss_of(model, rng, num_pairs)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        seconds = time.perf_counter() - start
        print(f"{num_pairs} pairs: loss {loss.item():.4f}, right {right:.3f}, {seconds:.0f} s")


def save(model: Trained, path: Path) -> None:
    weights = model.weights
    named = {
        "embedding": weights.embedding,
        "norm": weights.norm,
        "output": weights.output,
    }
    found = {NAMES[role]: values for role, values in named.items()}
    found[SMEAR] = torch.sigmoid(model.smear)
    for index, layer in enumerate(weights.layers):
        attention, ffn = layer.attention, layer.ffn
        if not isinstance(attention, GqaAttention) or not isinstance(ffn, DenseFfn):
            raise TypeError("the recall model has grouped-query attention and dense layers")
        joined = attention.query_key_value
        parts = {
            "attention_norm": layer.attention_norm,
            "query": joined[:QUERY_ROWS],
            "key": joined[QUERY_ROWS : QUERY_ROWS + KEY_ROWS],
            "value": joined[QUERY_ROWS + KEY_ROWS :],
            "attention_output": attention.output,
            "ffn_norm": layer.ffn_norm,
            "gate": ffn.gate_up[: SHAPE.ffn],
            "up": ffn.gate_up[SHAPE.ffn :],
            "down": ffn.down,
        }
        found |= {NAMES[role].format(layer=index): part for role, part in parts.items()}
    path.parent.mkdir(exist_ok=True)
    tensors = {name: values.detach().clone() for name, values in found.items()}
    save_file(tensors, path, metadata={"seed": str(SEED), "stages": str(STAGES)})
    print(f"{path}: SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the weights go")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # another number may round otherwise
    torch.use_deterministic_algorithms(True)
    model = new_model(SEED)
    train(model, np.random.default_rng(SEED))
    save(model, arguments.output)


if __name__ == "__main__":
    main()
