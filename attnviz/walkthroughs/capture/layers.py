"""A whole layer written down: all heads, the output projection, norms, residual sums, and the feed-forward network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from attnviz.attention import Note
from attnviz.capture.projections import Projection
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.capture.inputs import Inputs, projections_of_layer, write_projections
from attnviz.walkthroughs.capture.output import row_grid, write_output_projection, write_projection
from attnviz.walkthroughs.capture.parts import FeedForwardCalls, LayerParts, Norm, SubLayer
from attnviz.walkthroughs.capture.run import HeadRun, numbers


class LayerWriter:
    """A writer for the steps of a whole layer."""

    def __init__(
        self,
        calculation: Calculation,
        run: HeadRun,
        cross: HeadRun | None,
        *,
        from_input: bool,
        has_projections: bool,
    ) -> None:
        """Prepare to write.

        `run` is the layer's self-attention and `cross` its cross attention, if it has one. If `from_input`, queries,
        keys and values are computed by their projections; otherwise they are given. Without `has_projections` only the
        results of the other projections are written down.
        """
        self._calculation, self._run, self._cross = calculation, run, cross
        self._from_input, self._has_projections = from_input, has_projections
        self.notes: list[Note] = []
        self._n_norms = 0  # norms written so far, since norms, gains and shifts are numbered

    def write(self, parts: LayerParts) -> str:
        """Write down all parts in order; return the name of the layer's output."""
        inputs, x = Inputs(self._calculation, self._run), numbers(parts.input)
        first, *later_parts = parts.parts
        if not self._from_input:
            if first.pre_norm is not None:
                # The norm is not written, but counted: the given queries, keys and values come after it.
                self._n_norms += 1
            inputs.write(x, of_query=True)
        elif first.pre_norm is not None:
            source = inputs.write(x, of_query=False) or ""
            step = f"input_{first.pre_norm.operation}"
            inputs.know(
                numbers(first.input), self._write_norm(source, first.pre_norm, step, "N"), "n"
            )
        result = self._write_attention(first, self._run, inputs)
        stream = self._write_sum(first, result, inputs.write(x, of_query=True) or "", "residual", 1)
        for n, part in enumerate(later_parts, start=2):
            part_input = stream
            if part.pre_norm is not None:
                part_input = self._write_norm(stream, part.pre_norm, part.pre_norm.operation)
            if isinstance(part.computation, FeedForwardCalls):
                result = self._write_network(part.computation, part_input)
                step = "residual_out" if part.post_norm is None else "residual_2"
            else:
                result = self._write_cross(part, part_input)
                step = "residual_cross"
            stream = self._write_sum(part, result, stream, step, n)
        return stream

    def _write_sum(self, part: SubLayer, result: str, stream: str, step: str, n: int) -> str:
        """Write down the residual sum of a part, and the norm after it; return the name of the result.

        `n` is the number of the part, counted from 1.
        """
        total = self._calculation.step(step, _numbered("residual", n), "add", result, stream)
        if part.post_norm is None:
            return total
        last = "_out" if step == "residual_2" else ""
        return self._write_norm(total, part.post_norm, f"{part.post_norm.operation}{last}")

    def _write_cross(self, part: SubLayer, query_input: str) -> str:
        """Write down cross attention, with queries from the grid `query_input`; return the name of its output."""
        assert self._cross is not None
        inputs = Inputs(self._calculation, self._cross)
        query = self._cross.collector.projections()[0]
        if query is not None:
            inputs.know(numbers(query.given), query_input, query_input)
        return self._write_attention(part, self._cross, inputs)

    def _write_attention(self, part: SubLayer, run: HeadRun, inputs: Inputs) -> str:
        """Write down all heads and the output projection of their contexts; return the name of the output."""
        contexts = []
        for head in range(run.layer.query.shape[1]):
            head_run = replace(run, head=head, suffix=f"{run.suffix}_{head}")
            if self._from_input:
                self.notes += write_projections(self._calculation, head_run, inputs)
            else:
                head_run.give_own(self._calculation)
            contexts.append(head_run.write_attention(self._calculation))
        assert isinstance(part.computation, Projection)
        return write_output_projection(
            self._calculation,
            contexts,
            part.computation,
            run.suffix,
            is_written=self._has_projections,
        )

    def _write_network(self, network: FeedForwardCalls, x: str) -> str:
        """Write down the feed-forward network on the grid x; return the name of its output."""
        activation, calculation = network.activation, self._calculation
        if network.gate is None:
            hidden = self._project("feed_forward_1", "hidden", "1", x, network.widen)
            active = calculation.step(activation, "active", activation, hidden)
        else:
            gate = self._project("feed_forward_gate", "gate", "g", x, network.gate)
            active = calculation.step(activation, "active", activation, gate)
            hidden = self._project("feed_forward_1", "hidden", "1", x, network.widen)
            active = calculation.step("gated", "gated", "product", active, hidden)
        return self._project("feed_forward_2", "narrowed", "2", active, network.narrow)

    def _project(self, step: str, result: str, letter: str, x: str, projection: Projection) -> str:
        names, is_written = (step, result, letter), self._has_projections
        return write_projection(self._calculation, names, x, projection, is_written=is_written)

    def _write_norm(self, x: str, norm: Norm, step: str, result: str = "") -> str:
        """Write down a norm of x, numbered unless it has the name `result`; return the name of its output."""
        self._n_norms += 1
        calculation, n = self._calculation, self._n_norms
        weights = [calculation.give(f"gain_{n}", row_grid(norm.gain))]
        if norm.operation == "norm":
            weights.append(calculation.give(f"shift_{n}", row_grid(norm.shift)))
        result = result or _numbered("norm", n)
        return calculation.step(step, result, norm.operation, x, *weights, number=norm.epsilon)


def projections_of(
    parts: LayerParts, first: HeadRun, cross: HeadRun | None
) -> Iterator[Projection]:
    """Yield all projections of a layer."""
    for run in (first, cross):
        for projected in projections_of_layer(run.collector) if run is not None else ():
            if projected is not None:
                yield projected.projection
    for part in parts.parts:
        if isinstance(part.computation, Projection):
            yield part.computation
        else:
            yield from filter(
                None, (part.computation.widen, part.computation.narrow, part.computation.gate)
            )


def _numbered(name: str, n: int) -> str:
    return name if n == 1 else f"{name}_{n}"
