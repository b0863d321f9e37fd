"""A whole layer written down: all heads, the output projection, norms, residual sums, and the feed-forward network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from attnviz.attention import Note
from attnviz.capture.projections import Projection
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.capture.inputs import Inputs, makers, write_projections
from attnviz.walkthroughs.capture.output import row_grid, write_output_projection, write_projection
from attnviz.walkthroughs.capture.parts import FeedForwardCalls, LayerParts, Norm, SubLayer
from attnviz.walkthroughs.capture.run import HeadRun, numbers


class LayerWriter:
    """Writes down a whole layer."""

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

        `run` is the layer's self-attention and `cross` its cross attention, if it has one. Queries, keys and values are
        made by their projections if `from_input`, else given. Without `has_projections` the results of the other
        projections are given.
        """
        self._calculation, self._run, self._cross = calculation, run, cross
        self._from_input, self._has_projections = from_input, has_projections
        self.notes: list[Note] = []
        self._n_norms = 0  # so far: norms are numbered, with their gains and shifts

    def write(self, parts: LayerParts) -> str:
        """Write down all parts in turn; return the name of the layer's output."""
        inputs, x = Inputs(self._calculation, self._run), numbers(parts.x)
        first, *others = parts.parts
        if not self._from_input:
            if first.before is not None:
                self._n_norms += 1  # the heads' own query, key and value are made from it
            inputs.write(x, of_query=True)
        elif first.before is not None:
            every = inputs.write(x, of_query=False) or ""
            normed = self._write_norm(every, first.before, is_first=True)
            inputs.know(numbers(first.read), normed, "n")
        made = self._write_attention(first, self._run, inputs)
        stream = inputs.write(x, of_query=True) or ""
        stream = self._write_sum(first, made, stream, "residual", 1)
        for n, part in enumerate(others, start=2):
            is_last = part is others[-1]
            read = stream if part.before is None else self._write_norm(stream, part.before)
            if isinstance(part.work, FeedForwardCalls):
                made = self._write_network(part.work, read)
            else:
                made = self._write_cross(part, read)
            step = "residual_cross"
            if is_last:
                step = "residual_2" if part.after is not None else "residual_out"
            stream = self._write_sum(part, made, stream, step, n, is_last=is_last)
        return stream

    def _write_sum(
        self, part: SubLayer, made: str, stream: str, step: str, n: int, *, is_last: bool = False
    ) -> str:
        """Write down the sum of a part's result and the stream, with the norms around it."""
        if part.inside is not None:
            made = self._write_norm(made, part.inside)
        total = self._calculation.step(step, _numbered("residual", n), "add", made, stream)
        return total if part.after is None else self._write_norm(total, part.after, is_last=is_last)

    def _write_cross(self, part: SubLayer, read: str) -> str:
        """Write down cross attention, whose queries are made of a grid that is there."""
        assert self._cross is not None
        inputs = Inputs(self._calculation, self._cross)
        query = self._cross.keep.projections()[0]
        if query is not None:
            inputs.know(numbers(query.given), read, read)
        return self._write_attention(part, self._cross, inputs)

    def _write_attention(self, part: SubLayer, run: HeadRun, inputs: Inputs) -> str:
        """Write down all heads and the output projection of their contexts."""
        contexts = []
        for head in range(run.layer.query.shape[1]):
            one = replace(run, head=head, suffix=f"{run.suffix}_{head}")
            if self._from_input:
                self.notes += write_projections(self._calculation, one, inputs)
            else:
                one.give_own(self._calculation)
            contexts.append(one.write_attention(self._calculation))
        assert isinstance(part.work, Projection)
        return write_output_projection(
            self._calculation, contexts, part.work, run.suffix, is_written=self._has_projections
        )

    def _write_network(self, network: FeedForwardCalls, read: str) -> str:
        activation = network.activation
        if network.gate is None:
            hidden = self._project("feed_forward_1", "hidden", "1", read, network.widen)
            active = self._calculation.step(activation, "active", activation, hidden)
        else:
            gate = self._project("feed_forward_gate", "gate", "g", read, network.gate)
            active = self._calculation.step(activation, "active", activation, gate)
            hidden = self._project("feed_forward_1", "hidden", "1", read, network.widen)
            active = self._calculation.step("gated", "gated", "product", active, hidden)
        return self._project("feed_forward_2", "narrowed", "2", active, network.narrow)

    def _project(self, step: str, result: str, letter: str, x: str, projection: Projection) -> str:
        return write_projection(
            self._calculation,
            (step, result, letter),
            x,
            projection,
            is_written=self._has_projections,
        )

    def _write_norm(
        self, x: str, norm: Norm, *, is_first: bool = False, is_last: bool = False
    ) -> str:
        self._n_norms += 1
        calculation, n = self._calculation, self._n_norms
        weights = [calculation.give(f"gain_{n}", row_grid(norm.gain))]
        if norm.operation == "norm":
            weights.append(calculation.give(f"shift_{n}", row_grid(norm.shift)))
        step: str = norm.operation
        if is_first:
            step = f"input_{norm.operation}"
        elif is_last:
            step = f"{norm.operation}_out"
        result = "N" if is_first else _numbered("norm", n)
        return calculation.step(step, result, norm.operation, x, *weights, number=norm.epsilon)


def projections_of(
    parts: LayerParts, first: HeadRun, cross: HeadRun | None
) -> Iterator[Projection]:
    """Yield all projections of a layer."""
    for run in (first, cross):
        for maker in makers(run.keep) if run is not None else ():
            if maker is not None:
                yield maker.projection
    for part in parts.parts:
        if isinstance(part.work, Projection):
            yield part.work
        else:
            yield from (part.work.widen, part.work.narrow)
            if part.work.gate is not None:
                yield part.work.gate


def _numbered(name: str, n: int) -> str:
    return name if n == 1 else f"{name}_{n}"
