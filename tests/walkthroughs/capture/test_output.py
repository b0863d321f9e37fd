"""From context to word: the probabilities are the model's own, every number is checked, and the chosen word is said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from attnviz import walkthrough
from attnviz.attention import Note
from attnviz.errors import SelectionError
from attnviz.models.training.files import load_home_built
from attnviz.walkthroughs.verify import examine

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough
    from tests.fixtures.zoo import Zoo

TEXT = "I love all you"


NEVER = (0, 2)
"""Padding and start, which the home-built models never choose."""


def is_like(walked: Walkthrough, logits: torch.Tensor, never: tuple[int, ...] = NEVER) -> list[int]:
    """Check that the largest probabilities are those of the logits [word]; return their words' numbers.

    These are at most ten, of 1% and more, and at least one.
    """
    own = logits.detach().double().softmax(dim=-1).numpy()
    best = [number for number in np.argsort(-own).tolist() if number not in never][:10]
    best = [number for number in best if own[number] >= 0.01] or best[:1]
    np.testing.assert_allclose(walked.grids["probabilities"].values, own[best][None], atol=1e-5)
    assert not examine(walked).fault
    return best


def test_the_next_word_of_a_decoder() -> None:
    """I love, and then? What the model itself predicts, in its own order."""
    model: Any
    card, model = load_home_built("toy-decoder")
    numbers = card.source.encode(["I", "love"])
    with torch.inference_mode():
        logits = model(torch.tensor([numbers]))[0][0, -1]
    walked = walkthrough("I love", "toy-decoder", head="1.2", query="love")
    best = is_like(walked, logits)
    assert walked.grids["probabilities"].columns == card.source.decode(best)
    assert walked.notes[-1] == Note.of("next_chosen", word=card.source.decode(best)[0])
    forced = walkthrough("I love", "toy-decoder", query="I")
    assert forced.notes[-1] in {
        Note.of("next_given", word=forced.grids["probabilities"].columns[0], given="love"),
        Note.of("next_chosen", word="love"),
    }


def test_every_step_of_a_recurrent_translator() -> None:
    """Through the cell to the new state, which the next step begins with, and to the word generated."""
    model: Any
    card, model = load_home_built("toy-seq2seq")
    source = torch.tensor([card.source.encode(TEXT.split())])
    with torch.inference_mode():
        logits = model.translate(source).logits[0]
    state = None
    for number, own in enumerate(logits):
        walked = walkthrough(TEXT, "toy-seq2seq", query=number)
        is_like(walked, own)
        assert walked.grids["probabilities"].columns[0] == walked.grids["q"].rows[0]
        names = [step.name for step in walked.steps[-4:]]
        assert names == ["concatenated", "cell", "logits", "next_word"]
        if state is not None:
            np.testing.assert_allclose(walked.grids["x"].values, state, atol=1e-5)
        state = walked.grids["state"].values
    with pytest.raises(SelectionError, match=f"there is no query {len(logits)}"):
        walkthrough(TEXT, "toy-seq2seq", query=len(logits))


def test_teacher_forcing() -> None:
    """With teacher forcing the next step reads the given word, whatever the model would have chosen."""
    walked = walkthrough("I love", "toy-seq2seq", target="너희 모두를", query=0)
    word = walked.grids["probabilities"].columns[0]
    assert walked.notes[-1] == Note.of("next_given", word=word, given="너희")


def test_a_pretrained_decoder(zoo: Zoo) -> None:
    """Of a folder, with tied word vectors."""
    from transformers import GPT2LMHeadModel

    tokenizer, _ = zoo.library("gpt2")
    whole: Any = GPT2LMHeadModel.from_pretrained(zoo.folder("gpt2"))
    inputs = tokenizer(TEXT, return_tensors="pt")
    with torch.inference_mode():
        logits = whole.eval()(input_ids=inputs["input_ids"]).logits[0, -1]
    is_like(walkthrough(TEXT, zoo.source("gpt2"), query=-1), logits, ())
