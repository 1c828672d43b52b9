import numpy as np

from tests.evaluation.synthetic import SPEC, drawn_case


def test_masses_of_pages_are_the_softmax_of_each_query_over_what_it_sees() -> None:
    stream = drawn_case().stream
    for step, layer, head, query in ((0, 0, 0, 0), (2, 1, 0, 3), (3, 1, 1, 1)):
        seen = np.concatenate(
            [stream.context.keys(layer)[:, head], stream.keys[: step + 1, layer, head]]
        ).astype(np.float64)
        logits = seen @ stream.queries[step, layer, head, query] * stream.scale
        weights = np.exp(logits - logits.max())
        expected = np.zeros(stream.num_pages)
        np.add.at(expected, np.arange(len(seen)) // SPEC.page_size, weights / weights.sum())
        found = stream.page_mass[step, layer, head, query]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-9)


def test_dense_outputs_are_the_values_by_their_masses() -> None:
    stream = drawn_case().stream
    assert stream.values is not None
    step, layer, head, query = 3, 1, 0, 2
    keys, values = (
        np.concatenate([before[:, head], now[: step + 1, layer, head]]).astype(np.float64)
        for before, now in (
            (stream.context.keys(layer), stream.keys),
            (np.asarray(stream.context.values(layer)), stream.values),
        )
    )
    logits = keys @ stream.queries[step, layer, head, query] * stream.scale
    weights = np.exp(logits - logits.max())
    expected = weights @ values / weights.sum()
    np.testing.assert_allclose(
        stream.outputs[step, layer, head, query], expected, rtol=1e-4, atol=1e-5
    )
