"""A whole layer written down: all heads, and the output projection of their contexts.

Of home-built models the rest of the layer follows: residual sums, norms, and the feed-forward network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from attnviz.attention import Note
from attnviz.capture.projections import Call, Projection, is_linear, norm_of, projection_of, same
from attnviz.errors import NoAttentionError
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.capture.inputs import HomeBuilt, Inputs, write_projections
from attnviz.walkthroughs.capture.output import row_grid, write_output_projection, write_projection
from attnviz.walkthroughs.capture.run import HeadRun, numbers

# The modules of a home-built layer in the order in which `TransformerLayer` calls them, from its output projection on.
CALLS = ("output", "norm", "widen", "narrow", "last_norm")
CALLS_WITH_CROSS = (*CALLS[:2], "query", "key", "value", "cross_output", "cross_norm", *CALLS[2:])


def layer_calls(run: HeadRun, cross: HeadRun | None) -> dict[str, Call]:
    """Return the calls of a layer's modules by name, in their order; of a pretrained layer the output projection alone.

    `run` is the layer's self-attention, and `cross` its cross attention if it has one. Raises NoAttentionError: the
    layer is recurrent, or no output projection reads the contexts of all heads.
    """
    name, collector = run.source.name, run.collector
    if collector.cells():
        raise NoAttentionError(
            f"{name} is recurrent: it has no layer to follow as a whole; follow one query of it instead"
        )
    contexts = collector.layer.output.flatten(2)  # (B, Q, H, d) -> (B, Q, H * d)
    for number, call in enumerate(collector.after):
        if is_linear(call.module) and same(call.given, contexts):
            if not isinstance(run.source, HomeBuilt):
                return {"output": call}
            names = CALLS if cross is None else CALLS_WITH_CROSS
            return dict(zip(names, collector.after[number:], strict=False))
    raise NoAttentionError(
        f"{name}: layer {collector.layer.number} cannot be followed as a whole: no output projection reads the"
        " contexts of all its heads"
    )


def count_weights(calls: Mapping[str, Call], run: HeadRun, cross: HeadRun | None) -> int:
    """Return the number of weights of all projections of a layer."""
    projections = [_projection(call) for call in calls.values() if is_linear(call.module)]
    for each in (run, cross):
        for projection in each.collector.projections()[:3] if each is not None else ():
            if projection is not None:
                projections.append(projection)
    return sum(projection.weight.numel() for projection in projections)


class LayerWriter:
    """A writer for the steps of a whole layer."""

    def __init__(
        self, calculation: Calculation, *, from_input: bool, has_projections: bool
    ) -> None:
        """Prepare to write.

        If `from_input`, queries, keys and values are computed by their projections; otherwise they are given. Without
        `has_projections` only the results of the other projections are written down.
        """
        self._calculation = calculation
        self._from_input, self._has_projections = from_input, has_projections
        self.notes: list[Note] = []

    def write(self, calls: Mapping[str, Call], run: HeadRun, cross: HeadRun | None) -> str:
        """Write down the layer with these calls; return the name of its output."""
        inputs = Inputs(self._calculation, run)
        query = run.collector.projections()[0]
        if query is None or "norm" not in calls:  # a pretrained layer, which ends here
            return self._write_attention(run, inputs, calls["output"])
        x = numbers(query.given)
        if not self._from_input:  # the residual sum reads it
            inputs.write(x, of_query=True)
        result = self._write_attention(run, inputs, calls["output"])
        stream = inputs.write(x, of_query=True) or ""
        stream = self._write_sum("residual", 1, result, stream, calls["norm"])
        n = 2
        if cross is not None:
            inputs = Inputs(self._calculation, cross, query_input=stream)
            result = self._write_attention(cross, inputs, calls["cross_output"])
            stream = self._write_sum("residual_cross", n, result, stream, calls["cross_norm"])
            n += 1
        hidden = self._project(("feed_forward_1", "hidden", "1"), stream, calls["widen"])
        active = self._calculation.step("relu", "active", "relu", hidden)
        result = self._project(("feed_forward_2", "narrowed", "2"), active, calls["narrow"])
        return self._write_sum("residual_2", n, result, stream, calls["last_norm"])

    def _write_attention(self, run: HeadRun, inputs: Inputs, output: Call) -> str:
        """Write down all heads and the output projection of their contexts; return the name of the output."""
        contexts = []
        for head in range(run.layer.query.shape[1]):
            head_run = replace(run, head=head, suffix=f"{run.suffix}_{head}")
            if self._from_input:
                self.notes += write_projections(self._calculation, head_run, inputs)
            else:
                head_run.give_own(self._calculation)
            contexts.append(head_run.write_attention(self._calculation))
        return write_output_projection(
            self._calculation,
            contexts,
            _projection(output),
            run.suffix,
            is_written=self._has_projections,
        )

    def _write_sum(self, step: str, n: int, result: str, stream: str, norm: Call) -> str:
        """Write down a residual sum and the norm of it, the layer's `n`-th; return the name of the result."""
        calculation = self._calculation
        number = "" if n == 1 else f"_{n}"
        total = calculation.step(step, f"residual{number}", "add", result, stream)
        gain, shift, epsilon = norm_of(norm)
        weights = [
            calculation.give(f"gain_{n}", row_grid(gain)),
            calculation.give(f"shift_{n}", row_grid(shift)),
        ]
        name = "norm_out" if step == "residual_2" else "norm"
        return calculation.step(name, f"norm{number}", "norm", total, *weights, number=epsilon)

    def _project(self, names: tuple[str, str, str], x: str, call: Call) -> str:
        is_written = self._has_projections
        return write_projection(
            self._calculation, names, x, _projection(call), is_written=is_written
        )


def _projection(call: Call) -> Projection:
    """Return a call of a linear module as a projection."""
    projection = projection_of(call, 0, call.made.shape[2])
    assert projection is not None
    return projection
