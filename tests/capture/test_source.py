"""Models that are in memory already: any head, the same numbers, and everything left as it was found."""

from __future__ import annotations

import inspect
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import nn

import attnviz
from attnviz.attention import Note
from attnviz.errors import AttnvizError, InputError, ModelError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = "I love all you"
SIZES = {"d_model": 24, "d_kv": 8, "d_ff": 32, "decoder_start_token_id": 0}
SIZES |= {"num_layers": 2, "num_heads": 3, "num_hidden_layers": 2, "num_attention_heads": 3}
SIZES |= {"hidden_size": 24, "intermediate_size": 32, "n_embd": 24, "n_layer": 2, "n_head": 3}
SIZES |= {f"{side}_layers": 2 for side in ("encoder", "decoder")}
SIZES |= {f"{side}_attention_heads": 3 for side in ("encoder", "decoder")}
SIZES |= {f"{side}_ffn_dim": 32 for side in ("encoder", "decoder")}
"""Sizes of tiny models, under the names of every kind."""
HEADS = (
    *("BertModel", "BertForSequenceClassification", "BertForMaskedLM", "GPT2LMHeadModel"),
    *("T5EncoderModel", "T5ForConditionalGeneration", "BartForConditionalGeneration"),
    *("BartForCausalLM", "PegasusForCausalLM"),
)


@pytest.fixture(scope="module")
def tokenizer(real_model: str) -> Any:
    """The real model's own."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(real_model)


@pytest.fixture
def make(tokenizer: Any) -> Callable[..., Any]:
    """A tiny model of a class with random weights, in training, with as many word vectors as there are tokens."""
    import transformers

    def build(name: str, **more: Any) -> Any:
        torch.manual_seed(0)
        kind = getattr(transformers, name)
        accepted = {*vars(kind.config_class())} | {*kind.config_class.attribute_map}
        sizes = {size: value for size, value in SIZES.items() if size in accepted}
        return kind(kind.config_class(**{"vocab_size": len(tokenizer), **sizes, **more})).train()

    return build


def state(model: Any) -> tuple[object, ...]:
    """The state of a model that must not change: configurations, modes, implementation, settings, weights."""
    generation = getattr(model, "generation_config", None)
    return (
        dict(vars(model.config)),
        [module.training for module in model.modules()],
        [
            (name, weight.requires_grad, weight.sum().item())
            for name, weight in model.named_parameters()
        ],
        None if generation is None else (id(generation), generation.to_dict()),
    )


@pytest.mark.parametrize("gradients", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("name", HEADS)
def test_any_head(
    name: str, gradients: Callable[[], Any], make: Callable[..., Any], tokenizer: Any
) -> None:
    """The model's own attention, proved; it and its configuration are as they were, and it can be trained on."""
    model = make(name)
    before = state(model)
    with gradients():
        record = attnviz.attend(TEXT, model, tokenizer)
    assert state(model) == before
    assert record.model == f"{name} in memory"
    assert record.receipt is not None
    made = tokenizer(TEXT, return_tensors="pt")
    reader = model.get_encoder() if model.config.is_encoder_decoder else model
    reader.set_attn_implementation("eager")
    with torch.no_grad():
        expected = reader.eval()(**_accepted(reader, made), output_attentions=True).attentions
    np.testing.assert_allclose(record.weights, torch.cat(expected).numpy(), atol=1e-6)
    reader(**_accepted(reader, made))[0].sum().backward()
    assert any(weight.grad is not None for weight in model.parameters())


def _accepted(model: Any, made: Any) -> dict[str, Any]:
    names = inspect.signature(model.forward).parameters
    return {name: value for name, value in made.items() if name in names}


def test_left_as_found_after_an_error(
    make: Callable[..., Any], tokenizer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that fails in its middle is as it was, too."""
    model = make("BertForMaskedLM")
    before = state(model)

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("a layer fails")

    monkeypatch.setattr(model.bert.encoder.layer[1], "forward", fail)
    with pytest.raises(ModelError, match="cannot be run on this text: a layer fails"):
        attnviz.attend(TEXT, model, tokenizer)
    assert state(model) == before


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when it compiles
def test_compiled(make: Callable[..., Any], tokenizer: Any) -> None:
    """It runs as it is written: nothing of attnviz is compiled with it, which takes long and counts as its own."""
    model = make("BartForConditionalGeneration", eos_token_id=tokenizer.sep_token_id)
    seen = []
    expected = attnviz.attend(TEXT, model, tokenizer)

    def backend(graph: Any, _: object) -> Any:
        seen.append(graph)
        return graph.forward

    model.compile(backend=backend)
    assert np.array_equal(attnviz.attend(TEXT, model, tokenizer).weights, expected.weights)
    attnviz.attend(TEXT, model, tokenizer, kind="cross")
    assert not seen


def test_a_tokenizer_of_another_model(make: Callable[..., Any], tokenizer: Any) -> None:
    """More tokens than word vectors: refused. Far fewer: told in a note, since tables are padded."""
    with pytest.raises(
        ModelError, match=r"30,522 tokens, but BertModel has 1,000 word vectors: it belongs to anot"
    ):
        attnviz.attend(TEXT, make("BertModel", vocab_size=1000), tokenizer)
    record = attnviz.attend(TEXT, make("BertModel", vocab_size=50000), tokenizer)
    assert record.notes == (Note.of("vocabulary_smaller", pieces=30522, vectors=50000),)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is:DeprecationWarning")
def test_refused(make: Callable[..., Any], tokenizer: Any) -> None:
    """Wrong models and tokenizers, and ways to load a model that is loaded already, are refused."""
    from transformers import ViTConfig, ViTModel

    model = make("BertModel")
    pictures = ViTModel(ViTConfig(image_size=32, num_hidden_layers=1))
    script = torch.jit.script(nn.Linear(2, 2))
    one_size: dict[str, Any] = {"device": "cpu", "dtype": "float64"}
    more: dict[str, Any]
    given: Any
    for given, own_tokenizer, more, error, words in (
        ({}, tokenizer, {}, ModelError, "a torch module, not of type dict"),
        (model, None, {}, ModelError, "needs its Hugging Face tokenizer, .*: there is none"),
        (pictures, None, {}, ModelError, r"ViTModel reads pictures, and no text: .*attnviz\.watch"),
        (model, "bert", {}, ModelError, "this is a str"),
        (make("BertModel").to("meta"), tokenizer, {}, ModelError, "weights are on the meta device"),
        (
            script,
            None,
            {},
            ModelError,
            "^a RecursiveScriptModule is TorchScript, .*: give the torch",
        ),
        (nn.Sequential(script), None, {}, ModelError, "^a RecursiveScriptModule is TorchScript"),
        ("toy", tokenizer, {}, SettingsError, "a tokenizer goes with a model that is in memory"),
        (model, tokenizer, one_size, SettingsError, "loaded already: device and dtype cannot be"),
    ):
        with pytest.raises(error, match=words):
            attnviz.attend(TEXT, given, own_tokenizer, **more)


@pytest.mark.parametrize(
    ("function", "keyword", "meant"),
    [
        (attnviz.generate, "max_tokens", "max_new_tokens"),
        (attnviz.generate, "temprature", "temperature"),
        (attnviz.walkthrough, "devise", "device"),
        (attnviz.doctor, "sed", "seed"),
        (attnviz.as_source, "revison", "revision"),
    ],
)
def test_a_misspelled_keyword(function: Callable[..., Any], keyword: str, meant: str) -> None:
    """The error names the function that was called, and the keyword that was meant."""
    name = function.__name__
    with pytest.raises(TypeError, match=rf"^{name}\(\) .* '{keyword}'. Did you mean '{meant}'\?"):
        function("toy", **{keyword: 3})


def test_unknown_tokens(make: Callable[..., Any], tokenizer: Any) -> None:
    """What the tokenizer does not know is counted in a note; special tokens do not count."""
    record = attnviz.attend("I ⻱ love ⻱", make("BertModel"), tokenizer)
    assert record.notes == (Note.of("unknown_tokens", n=2, total=4),)


def test_words(make: Callable[..., Any], tokenizer: Any) -> None:
    """Words keep their places in the text, and are merged as they were given."""
    record = attnviz.attend(["I", "am", "well-known", "embeddings"], make("BertModel"), tokenizer)
    assert record.text == "I am well-known embeddings"
    places = [record.text[slice(*one.span)].lower() for one in record.query_tokens if one.span]
    assert places == [one.text.removeprefix("·") for one in record.query_tokens[1:-1]]
    merged = attnviz.merge_words(attnviz.hide_special(record))
    assert [one.text for one in merged.query_tokens] == ["i", "am", "well-known", "embeddings"]


@pytest.mark.parametrize("name", ["BertModel", "BartForCausalLM", "T5ForConditionalGeneration"])
def test_what_the_tokenizer_returned(name: str, make: Callable[..., Any], tokenizer: Any) -> None:
    """Its output, padded or not, as lists or tensors, or the ids alone: the numbers of the text itself."""
    model, text = make(name), "i love embeddings"
    whole = attnviz.attend(text, model, tokenizer)
    for prepared in (
        tokenizer(text),
        tokenizer(text, return_tensors="pt"),
        tokenizer(text, padding="max_length", max_length=12),
        tokenizer(text)["input_ids"],
        torch.tensor(tokenizer(text)["input_ids"]),
        tokenizer(text, padding="max_length", max_length=12)["input_ids"],
        tokenizer(text, padding="max_length", max_length=12, return_tensors="pt")["input_ids"],
        [tokenizer.pad_token_id, *tokenizer(text)["input_ids"]],
    ):
        record = attnviz.attend(prepared, model, tokenizer)
        assert record.receipt is not None
        assert record.text == text
        np.testing.assert_allclose(record.weights, whole.weights, atol=1e-6)
        assert [(one.text, one.id, one.special) for one in record.query_tokens] == [
            (one.text, one.id, one.special) for one in whole.query_tokens
        ]


def test_ids_that_may_be_more_than_padding(make: Callable[..., Any], real_model: str) -> None:
    """Padding within a text is kept, and so is padding whose token also ends a text."""
    from transformers import AutoTokenizer

    own_tokenizer = AutoTokenizer.from_pretrained(real_model)
    model, pad = make("BertModel"), own_tokenizer.pad_token_id
    record = attnviz.attend([101, pad, 102, pad], model, own_tokenizer)
    assert [token.id for token in record.query_tokens] == [101, pad, 102]
    own_tokenizer.eos_token = own_tokenizer.pad_token
    record = attnviz.attend([101, 102, pad], model, own_tokenizer)
    assert [token.id for token in record.query_tokens] == [101, 102, pad]


def test_a_pair_that_the_tokenizer_returned(make: Callable[..., Any], tokenizer: Any) -> None:
    """The model gets the types of the tokens too."""
    model = make("BertModel")
    whole = attnviz.attend("i love you", model, tokenizer, pair="you love me")
    record = attnviz.attend(tokenizer("i love you", "you love me"), model, tokenizer)
    np.testing.assert_array_equal(record.weights, whole.weights)


def their_own(model: Any, encoding: Any) -> np.ndarray:
    """The weights of the model's own `output_attentions`, [layer, head, query, key]."""
    model.eval().set_attn_implementation("eager")
    with torch.no_grad():
        return torch.stack(model(**encoding, output_attentions=True).attentions)[:, 0].numpy()


@pytest.mark.parametrize("given", ["bbox", "position_ids", "pixel_values", "padding on the left"])
def test_all_that_the_model_takes_is_passed_on(
    given: str, make: Callable[..., Any], tokenizer: Any
) -> None:
    """Places on a page, positions, a picture, padding: the weights are of the model that read them; a note says so."""
    encoding = tokenizer("total 12 dollars", return_tensors="pt")
    n, first = encoding["input_ids"].shape[1], 0
    name, sizes = "BertModel", dict[str, Any]()
    if given == "bbox":
        name = "LayoutLMModel"
        boxes = [[[10 * place, 5, 10 * place + 8, 20] for place in range(n)]]
        encoding["bbox"] = torch.tensor(boxes)
    elif given == "position_ids":
        encoding["position_ids"] = torch.arange(n)[None] + 3
    elif given == "pixel_values":
        from transformers import CLIPVisionConfig, LlamaConfig

        tower: dict[str, Any] = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2}
        words = tower | {"num_attention_heads": 3, "vocab_size": len(tokenizer)}
        name, sizes = "LlavaForConditionalGeneration", {"image_token_index": 7}
        sizes |= {"text_config": LlamaConfig(**words), "vision_feature_layer": -1}
        picture: dict[str, Any] = {"num_attention_heads": 2, "image_size": 16, "patch_size": 8}
        sizes["vision_config"] = CLIPVisionConfig(**tower | picture)
        ids = torch.tensor([[7, 7, 7, 7, *encoding["input_ids"][0].tolist()]])
        encoding = {"input_ids": ids, "pixel_values": torch.randn(1, 3, 16, 16)}
    else:
        tokenizer.padding_side = "left"
        options = {"padding": "max_length", "max_length": n + 3, "return_tensors": "pt"}
        encoding, first = tokenizer("total 12 dollars", **options), 3
        tokenizer.padding_side = "right"
    model = make(name, **sizes)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    record = attnviz.attend(encoding, model, tokenizer)
    expected = their_own(model, encoding)[:, :, first:, first:]
    np.testing.assert_allclose(record.weights, expected, atol=1e-5)
    assert [note.code for note in record.notes] == ([] if first else ["inputs"])
    # The note tells such an input from another, and a saved record's digest covers the note.
    if not first:
        changed = encoding | {name: encoding[name] + 1 for name in [given]}
        assert attnviz.attend(changed, model, tokenizer).notes != record.notes


@pytest.mark.parametrize(
    ("name", "extra", "message"),
    [
        ("BertModel", {"bbox": torch.zeros(1, 5, 4)}, "takes no bbox"),
        ("BertModel", {"labels": [0]}, "takes no labels"),
        ("BertModel", {"position_ids": "12345"}, "position_ids must be an array of numbers"),
        ("GPT2LMHeadModel", {"pixel_values": torch.zeros(1, 3, 8, 8)}, "takes no pixel_values"),
        ("T5ForConditionalGeneration", {"token_type_ids": [0, 0, 0, 1, 1]}, "no token_type_ids"),
        ("BertModel", {"attention_mask": torch.ones(1, 5, 5)}, "attention_mask has the shape"),
    ],
)
def test_what_the_model_does_not_take_is_refused_by_name(
    name: str, extra: dict[str, Any], message: str, make: Callable[..., Any], tokenizer: Any
) -> None:
    """Left out without a word, it would be another input than the one that was given."""
    with pytest.raises(InputError, match=message):
        attnviz.attend({"input_ids": [7, 8, 9, 10, 11], **extra}, make(name), tokenizer)


def test_the_same_while_it_is_watched(make: Callable[..., Any], tokenizer: Any) -> None:
    """A model that computes something else while it is watched is refused; another thread's model runs as before."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ids = torch.tensor([[7, 8, 9]])
    model, other = make("BertModel").eval(), make("BertModel").eval()
    other.set_attn_implementation("eager")
    alone = other(ids).last_hidden_state
    seen = []

    def beside(*_: object) -> None:
        thread = Thread(target=lambda: seen.append(other(ids).last_hidden_state))
        thread.start()
        thread.join()

    hook = model.register_forward_pre_hook(beside)
    attnviz.attend({"input_ids": ids}, model, tokenizer)
    hook.remove()
    assert seen
    assert all(torch.equal(output, alone) for output in seen)
    assert "eager" not in ALL_ATTENTION_FUNCTIONS

    def changed(_module: Any, _inputs: Any, output: Any) -> Any:
        if "eager" in ALL_ATTENTION_FUNCTIONS:  # which attnviz registers for the time of a run
            output.last_hidden_state = output.last_hidden_state * 1.5
        return output

    model = make("BertModel")
    model.register_forward_hook(changed)
    with pytest.raises(ModelError, match="something else while it is watched"):
        attnviz.attend(TEXT, model, tokenizer)


@pytest.mark.parametrize(
    ("prepared", "more", "message"),
    [
        ([[7, 8], [7]], {}, "of one text"),
        ([[7, 8], [7, 9]], {}, "of one text"),
        ([0.5], {}, "of one text"),
        (["a", 7], {}, "of one text"),
        (None, {}, "of one text"),
        ([], {}, "the text is empty"),
        ([""], {}, "the text is empty"),
        ([0, 0], {}, "all ids are padding"),
        ([10**6], {}, "token ids are from 0 to"),
        ([-1], {}, "token ids are from 0 to"),
        ([7] * 600, {}, "has 600 tokens, .*: shorten it$"),
        (["a"] * 600, {}, "has 602 tokens, .*: shorten it$"),
        (["a\ud800"], {}, "character"),
        (["a", "\u200b", "b"], {}, "no token for word 1"),
        (["a", "b", ""], {}, "no token for word 2"),
        (["a"], {"pair": "b"}, "a pair goes with a text"),
    ],
)
def test_prepared_texts_that_are_refused(
    prepared: Any,
    more: dict[str, Any],
    message: str,
    make: Callable[..., Any],
    tokenizer: Any,
) -> None:
    """Several texts, unknown ids, no token or too many: each in one line."""
    with pytest.raises(AttnvizError, match=message) as error:
        attnviz.attend(prepared, make("BertModel"), tokenizer, **more)
    assert "\n" not in str(error.value)


def test_a_home_built_model_reads_texts() -> None:
    """Words and ids are for models with a Hugging Face tokenizer."""
    with pytest.raises(InputError, match="toy reads a text, not list"):
        attnviz.attend(["I", "love"], "toy")


def test_wrapped_models(make: Callable[..., Any], tokenizer: Any) -> None:
    """A pipeline, and a SentenceTransformer (a sequence that begins with its transformer), are models in memory."""
    from transformers import pipeline

    model = make("BertForSequenceClassification")
    plain = attnviz.attend(TEXT, model, tokenizer)
    first = torch.nn.Module()
    # as sentence_transformers.models.Transformer has them
    first.auto_model, first.tokenizer = model, tokenizer
    for wrapped in (
        pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu"),
        torch.nn.Sequential(first, torch.nn.Identity()),
    ):
        assert attnviz.attend(TEXT, wrapped) == plain
        with pytest.raises(SettingsError, match="has its own tokenizer"):
            attnviz.attend(TEXT, wrapped, tokenizer)
