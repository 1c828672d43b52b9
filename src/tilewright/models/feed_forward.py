"""The feed-forward half of a layer: SwiGLU, alone or as experts behind a router."""

from typing import Any, assert_never

from tilewright.errors import InternalError
from tilewright.models.namespace import Array
from tilewright.models.shape import ExpertShape, GateKind
from tilewright.models.weights import DenseFfn, ExpertFfn, FfnWeights


def feed_forward(xp: Any, inputs: Array, ffn: FfnWeights, experts: ExpertShape | None) -> Array:
    """[tokens, hidden] -> [tokens, hidden]."""
    match ffn:
        case DenseFfn():
            return _swiglu(xp, inputs, ffn.gate_up, ffn.down)
        case ExpertFfn():
            if experts is None:
                raise InternalError("layer", "experts", "a shape that has them", "report it")
            return _run_experts(xp, inputs, ffn, experts)
        case _:
            assert_never(ffn)


def choose_experts(
    xp: Any, logits: Array, bias: Array | None, experts: ExpertShape
) -> tuple[Array, Array]:
    """Experts of each token and what their outputs are multiplied by, [tokens, active] each.

    Equal scores go to the lower expert. A group counts by its best expert under softmax, by its
    two best under sigmoid.
    """
    if experts.gate is GateKind.SOFTMAX:
        raised = xp.exp(logits - xp.max(logits, axis=-1, keepdims=True))
        scores = raised / xp.sum(raised, axis=-1, keepdims=True)
    else:
        scores = _sigmoid(xp, logits)
    choice = scores if bias is None else scores + bias
    if experts.active_groups < experts.groups:
        choice = _inside_best_groups(xp, choice, experts)
    order = xp.argsort(choice, axis=-1, descending=True, stable=True)[:, : experts.active]
    weights = xp.take_along_axis(scores, order, axis=-1)
    if experts.normalized:
        weights = weights / xp.sum(weights, axis=-1, keepdims=True)
    return order, weights * experts.scaling


def _inside_best_groups(xp: Any, choice: Array, experts: ExpertShape) -> Array:
    """Minus infinity for the experts of groups that a token does not choose."""
    grouped = xp.reshape(choice, (choice.shape[0], experts.groups, -1))
    counted = 1 if experts.gate is GateKind.SOFTMAX else min(2, grouped.shape[-1])
    best = xp.sort(grouped, axis=-1, descending=True)[..., :counted]
    order = xp.argsort(xp.sum(best, axis=-1), axis=-1, descending=True, stable=True)
    rank = xp.argsort(order, axis=-1)[..., None]
    outside = xp.full_like(grouped, -xp.inf)
    return xp.reshape(xp.where(rank < experts.active_groups, grouped, outside), choice.shape)


def _run_experts(xp: Any, inputs: Array, ffn: ExpertFfn, experts: ExpertShape) -> Array:
    chosen, weights = choose_experts(xp, inputs @ ffn.router.T, ffn.bias, experts)
    if ffn.shared is None:
        total = xp.zeros_like(inputs)
    else:
        total = _swiglu(xp, inputs, ffn.shared.gate_up, ffn.shared.down)
    for expert in range(experts.experts):
        tokens, places = xp.nonzero(chosen == expert)
        if tokens.shape[0]:
            part = _swiglu(
                xp, inputs[tokens], ffn.experts.gate_up[expert], ffn.experts.down[expert]
            )
            total[tokens] += part * weights[tokens, places][:, None]
    return total


def _swiglu(xp: Any, inputs: Array, gate_up: Array, down: Array) -> Array:
    joined = inputs @ gate_up.T
    width = joined.shape[-1] // 2
    gate = joined[:, :width]
    return (gate * _sigmoid(xp, gate) * joined[:, width:]) @ down.T


def _sigmoid(xp: Any, values: Array) -> Array:
    """By tanh, which does not overflow."""
    return 0.5 * xp.tanh(0.5 * values) + 0.5
