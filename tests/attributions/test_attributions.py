"""What a model does without the attention to a token: against cuts made by hand, and where the answer is known."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import attnviz
from attnviz.attributions.build import build
from attnviz.attributions.terminal import first_sentence
from attnviz.capture.sources.home_built import CircuitSource
from attnviz.errors import InputError, ModelError, SelectionError, SettingsError
from attnviz.models.circuit import RIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.fixtures.command_line import Result

TEXT = "The animal didn't cross the street because it was too tired"
SIZES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
DECODERS: dict[str, dict[str, Any]] = {
    "GPT2LMHeadModel": {"n_embd": 32, "n_layer": 2, "n_head": 4},
    "LlamaForCausalLM": SIZES | {"num_attention_heads": 4, "num_key_value_heads": 2},
    "Gemma2ForCausalLM": SIZES
    | {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 3},
    # A convolution between layers of attention.
    "Lfm2ForCausalLM": SIZES
    | {"num_hidden_layers": 3, "layer_types": ["full_attention", "conv", "full_attention"]}
    | {"num_attention_heads": 4, "num_key_value_heads": 2},
}
ENCODERS: dict[str, dict[str, Any]] = {
    "BertModel": SIZES | {"num_attention_heads": 4},
    "DistilBertModel": {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4},
}
WITH_HEADS: dict[str, dict[str, Any]] = {
    "BertForMaskedLM": SIZES | {"num_attention_heads": 4},
    "BertForSequenceClassification": SIZES | {"num_attention_heads": 4, "num_labels": 3},
    "GPT2ForSequenceClassification": DECODERS["GPT2LMHeadModel"],  # without padding
}
TRANSLATORS: dict[str, dict[str, Any]] = {
    "T5ForConditionalGeneration": {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2}
    | {"num_heads": 4, "decoder_start_token_id": 0},
    "BartForConditionalGeneration": {"d_model": 32, "encoder_layers": 2, "decoder_layers": 1}
    | {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48}
    | {"decoder_ffn_dim": 48, "decoder_start_token_id": 2, "forced_eos_token_id": None},
}


@pytest.fixture(scope="module")
def tokenizer(zoo: Any) -> Any:
    """A tokenizer of word pieces."""
    return zoo.library("distilbert")[0]


def make(name: str, tokenizer: Any, **sizes: Any) -> Any:
    """A random model of transformers, with weights large enough that attention is not flat."""
    import transformers

    torch.manual_seed(1)
    config = getattr(transformers, name).config_class(vocab_size=len(tokenizer), **sizes)
    model = getattr(transformers, name)(config).eval()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            nn.init.xavier_uniform_(parameter)
    return model


@contextmanager
def cut_by_hand(cut: Callable[[Any, Tensor], Tensor]) -> Iterator[None]:
    """Let the library's eager functions go on without `cut(module, weights)` of their weights."""
    import sys

    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    def attend(
        module: Any, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **more: Any
    ) -> Any:
        eager = next(
            vars(sys.modules[base.__module__])["eager_attention_forward"]
            for base in type(module).__mro__
            if "eager_attention_forward" in vars(sys.modules[base.__module__])
        )
        output, weights = eager(module, query, key, value, *rest, **more)
        values = value.repeat_interleave(weights.shape[1] // value.shape[1], dim=1)
        removed = (weights * cut(module, weights)) @ values
        return output - removed.transpose(1, 2), weights

    AttentionInterface.register("cut_by_hand", attend)
    AttentionMaskInterface.register("cut_by_hand", eager_mask)
    yield


def relative(after: Tensor, before: Tensor) -> float:
    """The distance of two vectors as a share of the length of one."""
    return float((after - before).norm() / before.norm())


def divergence(after: Tensor, before: Tensor) -> float:
    """How far a prediction is from the one before, in nats."""
    before, after = before.double().log_softmax(-1), after.double().log_softmax(-1)
    return float((before.exp() * (before - after)).sum())


@pytest.mark.parametrize("name", [*DECODERS, *ENCODERS])
def test_cuts_are_those_made_by_hand(name: str, tokenizer: Any) -> None:
    """Of a word's own rows, and of all rows but the key's own: one key at a time, with the library's own weights."""
    is_decoder = name in DECODERS
    model = make(name, tokenizer, **(DECODERS | ENCODERS)[name])
    found = attnviz.attribute(TEXT, model, tokenizer, target="next" if is_decoder else "it")
    given = attnviz.as_source(model, tokenizer).encode([TEXT]).inputs
    row = found.output.rows[0]
    how = divergence if is_decoder else relative

    def run(cut: Callable[[Any, Tensor], Tensor]) -> Tensor:
        with cut_by_hand(cut), torch.no_grad():
            model.set_attn_implementation("cut_by_hand")
            output = model(**given)
        found: Tensor = (output.logits if is_decoder else output.last_hidden_state)[0, row]
        return found

    before = run(lambda _, weights: torch.zeros_like(weights))
    for key in range(given["input_ids"].shape[1]):

        def here(_: Any, weights: Tensor, key: int = key) -> Tensor:
            cut = torch.zeros_like(weights)
            cut[:, :, row, key] = 1
            return cut

        def everywhere(_: Any, weights: Tensor, key: int = key) -> Tensor:
            cut = torch.zeros_like(weights)
            cut[..., key] = 1
            cut[:, :, key, key] = 0
            return cut

        assert found.here[key] == pytest.approx(how(run(here), before), abs=1e-5)
        assert found.everywhere[key] == pytest.approx(how(run(everywhere), before), abs=1e-5)


@pytest.mark.parametrize("name", WITH_HEADS)
def test_hidden_words_and_classes(name: str, tokenizer: Any) -> None:
    """A hidden word of the text and the class of the whole text are outputs too, in nats."""
    model = make(name, tokenizer, **WITH_HEADS[name])
    text = TEXT.replace("street", "[MASK]")
    is_class = name.endswith("Classification")
    found = attnviz.attribute(text, model, tokenizer, target="class" if is_class else None)
    given = attnviz.as_source(model, tokenizer).encode([text]).inputs
    row = given["input_ids"][0].tolist().index(tokenizer.mask_token_id)

    def run(key: int | None) -> Tensor:
        def cut(_: Any, weights: Tensor) -> Tensor:
            cut = torch.zeros_like(weights)
            if key is not None:
                cut[..., key] = 1
                cut[:, :, key, key] = 0
            return cut

        with cut_by_hand(cut), torch.no_grad():
            model.set_attn_implementation("cut_by_hand")
            logits: Tensor = model(**given).logits[0]
        return logits if is_class else logits[row]

    before = run(None)
    likely = before.softmax(-1)
    assert found.output.kind == ("class" if is_class else "hidden")
    assert found.output.probability == pytest.approx(float(likely.max()), abs=1e-5)
    if is_class:
        assert found.output.text == f"LABEL_{int(likely.argmax())}"
        asked = attnviz.attribute(text, model, tokenizer, label="label_1")
        assert asked.output.probability == pytest.approx(float(likely[1]), abs=1e-5)
    for key in range(given["input_ids"].shape[1]):
        assert found.everywhere[key] == pytest.approx(divergence(run(key), before), abs=1e-5)


def test_a_mask_of_another_name(zoo: Any) -> None:
    """What the model takes for a mask is said, where another one is typed."""
    with pytest.raises(InputError, match="is written <mask>"):
        attnviz.attribute("The [MASK] is tired", zoo.folder("roberta"))


def test_nothing_moves(tokenizer: Any) -> None:
    """Where the attention writes nothing, it cannot be told what matters; a vector of 0 is refused."""
    model = make("BertModel", tokenizer, **ENCODERS["BertModel"])
    with torch.no_grad():
        for layer in model.encoder.layer:
            layer.attention.output.dense.weight.zero_()
    found = attnviz.attribute(TEXT, model, tokenizer, target="it")
    assert {verdict.name for verdict in found.verdicts if verdict} == {"cannot tell"}
    assert not any(verdict.is_strong for verdict in found.verdicts if verdict)
    assert first_sentence(found).endswith("no cut changes it by more than rounding does.")
    with torch.no_grad():
        model.encoder.layer[-1].output.LayerNorm.weight.zero_()
        model.encoder.layer[-1].output.LayerNorm.bias.zero_()
    with pytest.raises(ModelError, match="the vector of the output is 0"):
        attnviz.attribute(TEXT, model, tokenizer, target="it")


def test_layers_without_attention(tokenizer: Any) -> None:
    """Those with attention keep their numbers."""
    model = make("Lfm2ForCausalLM", tokenizer, **DECODERS["Lfm2ForCausalLM"])
    found = attnviz.attribute(TEXT, model, tokenizer, head="2.1")
    assert found.layers == (0, 2)
    assert {layer for layer, _ in found.order} == {0, 2}
    expected = attnviz.attend(TEXT, model, tokenizer).weights[1, 1, -1]
    np.testing.assert_allclose(found.weight, expected, atol=1e-5)
    with pytest.raises(SelectionError, match="no layer 1"):
        attnviz.attribute(TEXT, model, tokenizer, head="1.0")


def test_the_saved_head_is_loaded(tokenizer: Any, tmp_path: Any) -> None:
    """A model in a folder is opened as it was saved; one without a head says which class has it."""
    text = TEXT.replace("street", "[MASK]")
    for name, kind in (("BertForMaskedLM", "hidden"), ("BertForSequenceClassification", "class")):
        model = make(name, tokenizer, **WITH_HEADS[name])
        model.save_pretrained(tmp_path / name)
        tokenizer.save_pretrained(tmp_path / name)
        found = attnviz.attribute(text if kind == "hidden" else TEXT, tmp_path / name, judged=0)
        assert found.output.kind == kind
    bare = make("BertModel", tokenizer, **ENCODERS["BertModel"])
    with pytest.raises(ModelError, match="predicts a class of the text, and no words"):
        attnviz.attribute(TEXT, tmp_path / name, word="it")
    with pytest.raises(ModelError, match="AutoModelForMaskedLM"):
        attnviz.attribute(text, bare, tokenizer)
    with pytest.raises(ModelError, match="AutoModelForSequenceClassification"):
        attnviz.attribute(text, bare, tokenizer, target="class")


@pytest.mark.parametrize("name", TRANSLATORS)
def test_cuts_of_a_translator(name: str, tokenizer: Any) -> None:
    """Out of the cross-attention of the word that is predicted; everywhere also out of the encoder."""
    model = make(name, tokenizer, **TRANSLATORS[name])
    model.generation_config.eos_token_id = list(range(len(tokenizer)))  # it writes one token
    source = attnviz.as_source(model, tokenizer)
    batch = source.encode(["I love all you"], kind="cross", targets=["you all"])
    given = batch.inputs
    found = attnviz.attribute("I love all you", model, tokenizer, target="next")
    encoder = {id(part) for part in model.get_encoder().modules()}
    ids = found.tokens
    with torch.no_grad():
        free = source.encode(["I love all you"], kind="cross").inputs

    def run(here: int | None, everywhere: int | None) -> Tensor:
        def cut(module: Any, weights: Tensor) -> Tensor:
            cut = torch.zeros_like(weights)
            is_encoder = id(module) in encoder
            is_cross = not is_encoder and weights.shape[3] == len(ids)
            if here is not None and is_cross:
                cut[:, :, 0, here] = 1
            if everywhere is not None and (is_cross or is_encoder):
                cut[..., everywhere] = 1
                if is_encoder:
                    cut[:, :, everywhere, everywhere] = 0
            return cut

        with cut_by_hand(cut), torch.no_grad():
            model.set_attn_implementation("cut_by_hand")
            logits: Tensor = model(**free).logits[0, 0]
        return logits

    before = run(None, None)
    assert given.keys() == free.keys()
    assert free["decoder_input_ids"].shape[1] != len(ids), (
        "the test tells cross-attention by its shape"
    )
    for key in range(len(ids)):
        assert found.here[key] == pytest.approx(divergence(run(key, None), before), abs=1e-5)
        assert found.everywhere[key] == pytest.approx(divergence(run(None, key), before), abs=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_known_answers(seed: int) -> None:
    """Each token of a decoder made by hand gets the verdict that its heads were made for."""
    source = CircuitSource(seed)
    found = build(source, "a layout", of="next", judged=20)
    verdicts = {
        kind: verdict.name
        for kind, verdict in zip(source.order, found.verdicts, strict=True)
        if verdict is not None
    }
    assert {kind: verdicts[kind] for kind in RIGHT} == RIGHT


def test_a_pronoun() -> None:
    """The toy's “it” uses the noun that it refers to; what the attention only passes on comes through other words."""
    found = attnviz.attribute(TEXT, "toy", target="it")
    names = {
        token.text: verdict and verdict.name
        for token, verdict in zip(found.tokens, found.verdicts, strict=True)
    }
    assert names["animal"] == "used"
    assert names["street"] == "attended to, not used"
    assert found.tokens[found.chosen].text == "animal"
    assert found.order[0][0] == 2
    assert found.together[0] == pytest.approx(found.heads.max())


def test_random_weights_use_nothing() -> None:
    """An untrained model attends, and no token stands out."""
    source = attnviz.open_source("toy").untrained(3)
    found = build(source, TEXT, of="it")
    assert not [v for v in found.verdicts if v is not None and v.name.startswith("used")]


def test_the_probability_of_a_word() -> None:
    """Before and after each cut; the word is the most likely one, or the one that is asked for."""
    found = attnviz.attribute("She is eating a green", "toy-decoder")
    asked = attnviz.attribute("She is eating a green", "toy-decoder", word="apple")
    assert found.output.text == "pear"
    assert asked.output.text == "apple"
    assert found.after is not None
    assert asked.output.probability is not None
    assert found.output.probability is not None
    assert found.output.probability > asked.output.probability
    assert found.after.shape == (3, 5)
    np.testing.assert_allclose(found.here, asked.here, atol=1e-6)  # the same distribution moves


def test_a_hidden_word_of_the_toy() -> None:
    """The toy predicts hidden words: who eats is a girl rather than a preposition."""
    found = attnviz.attribute("The [MASK] is eating a green apple.", "toy", word="girl", judged=0)
    model = attnviz.open_source("toy")
    assert (found.output.kind, found.output.text, found.output.rows) == ("hidden", "girl", (1,))
    assert found.tokens[1].id == model.mask_id
    assert found.output.probability is not None
    rarer = attnviz.attribute("The [MASK] is eating a green apple.", "toy", word="under", judged=0)
    assert rarer.output.probability is not None
    assert rarer.output.probability < found.output.probability


def test_heads_left_out() -> None:
    """The output without a head at all is that of the model whose output projection does not read it."""
    found = attnviz.attribute(TEXT, "toy", target="it", without_heads=True)
    assert found.without_head is not None
    model = attnviz.open_source("toy")._model  # type: ignore[attr-defined]
    ids = attnviz.open_source("toy").encode([TEXT]).inputs["words"]
    with torch.no_grad():
        before = model.encode(ids)[0][0, 7]
        projection = model.encoder.layers[1].attention.output_projection.weight
        kept = projection.clone()
        width = projection.shape[1] // 6
        projection[:, 2 * width : 3 * width] = 0
        after = model.encode(ids)[0][0, 7]
        projection[:] = kept
    assert found.without_head[1, 2] == pytest.approx(relative(after, before), abs=1e-5)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"text": "I"}, InputError, "a text of one token"),
        ({"target": "cat"}, SelectionError, "there is no word “cat” in this text"),
        ({"target": "the"}, InputError, "“the” is there 2 times: give its number, 0 or 4"),
        ({"target": "it", "word": "it"}, SettingsError, "give one output"),
        ({"word": "cat"}, InputError, "no word is hidden: write .MASK. for one word"),
        ({"text": "[MASK] is [MASK]"}, InputError, "2 words are hidden"),
        (
            {"model": "toy-transformer", "text": "I love you", "target": "sentence"},
            ModelError,
            "writes",
        ),
        ({"target": "it", "head": "9.9"}, SelectionError, "9"),
        (
            {"model": "toy-random", "target": "next"},
            ModelError,
            "toy-random .* predicts no next word",
        ),
        ({"model": "toy-seq2seq", "text": "I love you"}, ModelError, "attends once a step"),
        ({"model": "toy-decoder", "text": "I [MASK] you"}, InputError, "leave out .MASK."),
    ],
)
def test_refused(given: dict[str, Any], error: type[Exception], message: str) -> None:
    """What cannot be asked is said in one line."""
    arguments: dict[str, Any] = {"text": TEXT.replace("The", "the"), "model": "toy"} | given
    with pytest.raises(error, match=message):
        attnviz.attribute(**arguments)


def test_a_long_text() -> None:
    """Only some tokens are cut, those that are attended to most, and a note says so."""
    words = [f"w{n}" for n in range(140)]
    found = attnviz.attribute(" ".join(words), "toy-random", target="w7")
    assert [note.code for note in found.notes][-1] == "cut_of_long"
    assert np.isfinite(found.here).sum() == 32
    assert sum(verdict is not None for verdict in found.verdicts) <= 6


class TestCommand:
    """``attnviz attribute``."""

    @pytest.mark.parametrize("columns", [40, 60, 80, 120])
    def test_printed(self, typed: Callable[..., Result], columns: int) -> None:
        """The answer first, then a row for each token, in any window."""
        result = typed("attribute", "--toy", TEXT, "--for", "it", "-q", columns=columns)
        assert (result.status, result.errors) == (0, "")
        lines = result.output.splitlines()
        assert len(lines) <= 30 + 10 * (columns < 60)
        assert max(map(len, lines)) <= columns
        answer = " ".join(result.output.split())
        assert answer.startswith(
            "“animal” matters for “it”: without what it carries the vector changes by 118% (all others together: 23%)."
        )
        assert "used through other words" in result.output
        assert "✓ verified" in lines[-1]

    @pytest.mark.parametrize("style", ["sheet", "paper", "slides"])
    @pytest.mark.parametrize("lang", ["en", "ko"])
    def test_pictures(self, tmp_path: Any, style: Any, lang: str) -> None:
        """In every style and language, also of a whole sentence; equal attributions give equal files."""
        found = attnviz.attribute("She is eating a green apple", "toy", target="sentence", judged=1)
        files = [found.save(tmp_path / name, style=style, lang=lang) for name in ("a.svg", "b.svg")]
        assert files[0].read_bytes() == files[1].read_bytes()
        assert "eating" in files[0].read_text(encoding="utf-8")

    def test_heads(self, typed: Callable[..., Result], tmp_path: Any) -> None:
        """What changes without each head at all is printed and drawn."""
        output = tmp_path / "a.svg"
        result = typed("attribute", "--toy", TEXT, "--for", "it", "--heads", "-o", str(output))
        changes = attnviz.attribute(TEXT, "toy", target="it", without_heads=True).without_head
        assert changes is not None
        layer, head = np.unravel_index(changes.argmax(), changes.shape)
        answer = " ".join(result.output.split())
        assert f"for any token: {layer}.{head} {changes.max():.0%}" in answer
        assert "Without each head" in output.read_text(encoding="utf-8")

    def test_files(self, typed: Callable[..., Result], tmp_path: Any) -> None:
        """JSON has everything, CSV a row for each token, and the data frame the same numbers."""
        paths = [tmp_path / "a.json", tmp_path / "a.csv"]
        typed("attribute", "--toy", TEXT, "--for", "it", "-o", str(paths[0]), "-o", str(paths[1]))
        content = json.loads(paths[0].read_text(encoding="utf-8"))
        frame = attnviz.attribute(TEXT, "toy", target="it").to_frame()
        assert content["here"] == pytest.approx(frame["here"].tolist())
        assert paths[1].read_text(encoding="utf-8").splitlines()[0] == ",".join(frame.columns)
        assert [verdict and verdict["name"] for verdict in content["verdicts"]][1] == "used"

    @pytest.mark.parametrize(("model", "is_named"), [("toy", True), ("toy-seq2seq", False)])
    def test_named_by_heatmap(
        self, typed: Callable[..., Result], model: str, *, is_named: bool
    ) -> None:
        """Its last line is the command that answers the next question, unless the model cannot be cut."""
        last = typed("heatmap", "-m", model, "I love all you", "-q").output.splitlines()[-1]
        assert last.startswith("Does it matter? attnviz attribute ") is is_named
