"""Text as it is generated: each row is that of one full pass, with and without a cache, whatever stops it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.capture.sources.chat import render_chat
from attnviz.errors import InputError, ModelError, SelectionError, SettingsError, TooLongError
from attnviz.generations import capture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.attention import Attention
    from attnviz.generations.record import Step
    from tests.fixtures.zoo import Zoo

GROUPED: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 41, "num_hidden_layers": 3}
GROUPED |= {"num_attention_heads": 4, "num_key_value_heads": 2}
SPEAKING: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2", {"n_embd": 33, "n_head": 3, "n_layer": 3, "n_positions": 24}),
    "llama": ("Llama", GROUPED),
    "mistral": ("Mistral", {**GROUPED, "sliding_window": 4}),
}
"""Tiny decoders: learned positions; two heads of keys for four of queries; the same with a window."""
PROMPT, NEW = "I love all", 7


@pytest.fixture(scope="module")
def speaking(zoo: Zoo) -> Callable[[str], tuple[Any, Any]]:
    """Tiny decoders with random weights, their projection to words included, and their tokenizers."""
    import transformers

    def made(name: str) -> tuple[Any, Any]:
        folder = zoo.folder("gpt2" if name == "gpt2" else "llama")
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        kind, sizes = SPEAKING[name]
        config = getattr(transformers, f"{kind}Config")(**sizes)
        config.vocab_size, config.eos_token_id = len(tokenizer), None
        torch.manual_seed(3)
        model: Any = transformers.AutoModelForCausalLM.from_config(config).eval()
        for parameter in model.parameters():
            if parameter.ndim > 1:
                torch.nn.init.xavier_uniform_(parameter)
        return model, tokenizer

    return made


def n_first(record: Attention) -> int:
    """How many tokens the prompt has."""
    return sum(token.segment != 2 for token in record.key_tokens)


def numbers_of(record: Attention) -> list[int | None]:
    """The ids of the prompt and of the generated tokens."""
    return [token.id for token in (*record.key_tokens[: n_first(record)], *record.query_tokens)]


def chosen(whole: Any, record: Attention) -> Any:
    """The rows of a full pass that chose the generated tokens: from the last token of the prompt on."""
    return whole[..., n_first(record) - 1 : -1, :-1]


def assert_equal(weights: Any, expected: Any) -> None:
    """The weights are these, but for rounding."""
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral"])
def test_rows_are_those_of_one_full_pass(
    speaking: Callable[[str], tuple[Any, Any]], name: str
) -> None:
    """Token by token with the cache, or the finished text at once: the same weights; and the library's own text."""
    model, tokenizer = speaking(name)
    record = attnviz.generate(PROMPT, model, tokenizer, max_new_tokens=NEW)
    numbers = numbers_of(record)
    first = n_first(record)
    assert record.kind == "decoder"
    assert record.key_tokens[first:] == record.query_tokens[:-1]
    assert len(record.query_tokens) == NEW
    given = torch.tensor([numbers[:first]])
    own = model.generate(given, max_new_tokens=NEW, do_sample=False)
    assert own[0].tolist() == numbers
    model.set_attn_implementation("eager")
    whole = torch.cat(model(torch.tensor([numbers]), output_attentions=True).attentions)
    assert_equal(record.weights, chosen(whole.detach().numpy(), record))
    assert record.receipt is not None
    assert len(record.receipt.layers) == 3


@pytest.mark.parametrize("name", ["gpt2", "mistral"])
def test_the_cache_changes_nothing(
    speaking: Callable[[str], tuple[Any, Any]], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each token is read once; where a model keeps nothing, the text is read anew, and the rows are the same."""
    from attnviz.capture.sources.huggingface_decoding import PretrainedDecoding

    model, tokenizer = speaking(name)
    reads: list[int] = []
    model.get_input_embeddings().register_forward_pre_hook(
        lambda _, given: reads.append(given[0].shape[1])
    )
    kept = attnviz.generate(PROMPT, model, tokenizer, max_new_tokens=NEW)
    assert reads == [n_first(kept), *[1] * (NEW - 1)]
    usual = PretrainedDecoding.__post_init__

    def without(self: PretrainedDecoding) -> None:
        usual(self)
        self.cached = False

    monkeypatch.setattr(PretrainedDecoding, "__post_init__", without)
    anew = attnviz.generate(PROMPT, model, tokenizer, max_new_tokens=NEW)
    assert anew.query_tokens == kept.query_tokens
    assert_equal(anew.weights, kept.weights)


@pytest.mark.parametrize("name", ["bloom", "falcon"])
def test_models_with_attention_of_their_own(zoo: Zoo, name: str) -> None:
    """Where attention does not pass through the library's interface, its rows are seen all the same."""
    import transformers

    record = attnviz.generate(PROMPT, zoo.folder(name), max_new_tokens=NEW)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(
        zoo.folder(name), attn_implementation="eager"
    )
    numbers = torch.tensor([numbers_of(record)])
    whole = model(numbers, output_attentions=True)
    weights = torch.cat(whole.attentions).detach().numpy()
    assert_equal(record.weights, chosen(weights, record))
    assert whole.logits[0, -NEW - 1 : -1].argmax(dim=-1).tolist() == numbers[0, -NEW:].tolist()


@pytest.mark.parametrize("name", ["t5", "marian"])
def test_translation_shows_cross_attention(zoo: Zoo, name: str) -> None:
    """Each row is that of the step that generates its token, as in the record of the whole."""
    source = zoo.source(name)
    record = attnviz.generate(PROMPT, source, max_new_tokens=NEW)
    assert record.kind == "cross"
    whole = attnviz.attend(PROMPT, source, kind="cross")
    n = len(record.query_tokens)
    numbers = [token.id for token in whole.query_tokens[:n]]
    assert [token.id for token in record.query_tokens] == numbers
    assert_equal(record.weights, whole.weights[:, :, :n])


@pytest.mark.parametrize("name", ["toy-decoder", "toy-seq2seq"])
def test_home_built(name: str) -> None:
    """Each row is the step that chose its token, in decoders as in translators, and is called so."""
    steps: list[Step] = []
    record = attnviz.generate("I love", name, on_step=steps.append)
    assert record.query_tokens[-1].text == "<end>"
    assert [step.token for step in steps] == [*record.query_tokens]
    assert "row_generates_word" in [note.code for note in record.notes]
    if name == "toy-decoder":
        whole = attnviz.attend(f"I love {record.target}", name).weights[:, :, n_first(record) - 1 :]
    else:
        whole = attnviz.attend("I love", name, target=record.target).weights
    assert_equal(record.weights, whole)
    for place, step in enumerate(steps):
        n_keys = len(step.keys)
        np.testing.assert_array_equal(step.weights, record.weights[:, :, place, :n_keys])
        assert not record.weights[:, :, place, n_keys:].any()
        assert [t.text for t in step.keys] == [t.text for t in record.key_tokens[:n_keys]]
        assert 0 < step.probability <= 1


def test_seeds() -> None:
    """One seed gives one text; some other seed another."""
    drawn = [
        attnviz.generate("I", sample=True, temperature=2.0, seed=seed).target
        for seed in (1, 1, 2, 3)
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1
    likeliest = attnviz.generate("I").target
    for narrow in ({"top_k": 1}, {"top_p": 1e-9}, {"temperature": 1e-4}, {"temperature": 1e-300}):
        assert attnviz.generate("I", sample=True, seed=4, **narrow).target == likeliest
    assert attnviz.generate("I", sample=True, top_k=5, seed=1).notes[-1].code == "sampled"


def test_what_stops_it(speaking: Callable[[str], tuple[Any, Any]]) -> None:
    """The number wanted, the model's positions, its end, the keyboard: each is said, and what there is, is kept."""
    model, tokenizer = speaking("gpt2")
    for n, code in ((3, "generation_stopped"), (99, "positions_end")):
        record = attnviz.generate(PROMPT, model, tokenizer, max_new_tokens=n)
        assert record.notes[-1].code == code
        assert len(record.query_tokens) == (3 if n == 3 else 24 - n_first(record))
    model.generation_config.eos_token_id = [record.query_tokens[1].id]
    ended = attnviz.generate(PROMPT, model, tokenizer, max_new_tokens=9)
    assert len(ended.query_tokens) <= 2
    assert "generation_stopped" not in [note.code for note in ended.notes]

    def stop(step: Step) -> None:
        if step.number == 2:
            raise KeyboardInterrupt

    for name in ("toy-decoder", "toy-seq2seq"):
        cut = attnviz.generate("I love all", name, on_step=stop)
        assert len(cut.query_tokens) == 2
        assert cut.notes[-1] == attnviz.Note.of("generation_cut", n=2)
    assert attnviz.generate("I love all", on_step=stop).weights.shape[2:] == (2, 4)


def test_chosen_heads() -> None:
    """Layers and heads that are chosen, also from the end, are those of the whole."""
    whole = attnviz.generate("I love")
    part = attnviz.generate("I love", layers=[-1], heads=[2, 4])
    assert (part.layers, part.heads) == ((2,), (2, 4))
    np.testing.assert_array_equal(part.weights, whole.weights[2:, [2, 4]])


def test_rows_that_need_too_much_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says how much they would take; those of fewer heads are kept."""
    prompt = "the king loves you and I love all"
    whole = attnviz.generate(prompt, max_new_tokens=4)
    monkeypatch.setattr(capture, "MEMORY", whole.weights.nbytes - 1)
    with pytest.raises(
        InputError, match=r"^the attention of 4 new tokens takes [0-9,]+ bytes, and at most"
    ):
        attnviz.generate(prompt, max_new_tokens=4)
    part = attnviz.generate(prompt, max_new_tokens=4, layers=[-1], heads=[1])
    np.testing.assert_array_equal(part.weights, whole.select([-1], [1]).weights)


def test_bad_input(zoo: Zoo, speaking: Callable[[str], tuple[Any, Any]]) -> None:
    """What cannot be generated is refused in one line."""
    gpt2 = speaking("gpt2")
    needs_sample = "temperature, top_k, top_p and seed say how to sample: they go with sample"
    more: dict[str, Any]
    for prompt, model, more, error, words in (
        ("", ("toy-decoder",), {}, InputError, "the prompt is empty"),
        ("I", ("toy",), {}, ModelError, "toy generates nothing: it only reads"),
        ("I", (zoo.source("distilbert"),), {}, ModelError, "generates nothing"),
        ("I", (torch.nn.Linear(2, 2),), {}, ModelError, "cannot be run on this text"),
        ("a " * 23 + "b", gpt2, {}, TooLongError, "nothing can follow"),
        ("I", (), {"max_new_tokens": 0}, InputError, "at least 1 token"),
        ("I", gpt2, {"chat": True}, InputError, "no chat template"),
        ("abc", (Own(8), Words()), {"chat": True}, InputError, "has no chat template"),
        ("I", (), {"heads": [9]}, SelectionError, "there is no head 9"),
        ("I", (), {"temperature": 0.5}, SettingsError, needs_sample),
        ("I", (), {"seed": 3}, SettingsError, needs_sample),
        ("I", (), {"sample": True, "temperature": 0.0}, SettingsError, "above 0"),
        ("I", (), {"sample": True, "top_p": 1.5}, SettingsError, "at most 1"),
        ("I", (), {"sample": True, "top_k": 0}, SettingsError, "at least 1"),
    ):
        with pytest.raises(error, match=words):
            attnviz.generate(prompt, *model, **more)


def test_chat(speaking: Callable[[str], tuple[Any, Any]]) -> None:
    """The prompt stands in the model's own template."""
    model, tokenizer = speaking("llama")
    tokenizer.chat_template = (
        "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}[bot]"
    )
    record = attnviz.generate("I love all", model, tokenizer, chat=True, max_new_tokens=2)
    assert record.text == "[user] I love all\n[bot]"


@pytest.mark.parametrize(
    "module", ["raise ImportError", "RLIMIT_AS = 5\ndef setrlimit(*_): raise ValueError"]
)
def test_chat_where_memory_cannot_be_limited(
    speaking: Callable[[str], tuple[Any, Any]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    module: str,
) -> None:
    """A template is used on Windows, which knows no limits, and on macOS, which refuses this one."""
    _, tokenizer = speaking("llama")
    tokenizer.chat_template = "[user] {{ messages[0].content }}"
    (tmp_path / "resource.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr("attnviz.capture.sources.chat.SECONDS", 120)
    assert render_chat(tokenizer, "I love all", "llama") == "[user] I love all"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ 10 ** (10 ** 9) }}", "longer"),
        ("{{ 'a' * 10 ** 10 }}", "too much memory"),
        ("{{ 'a' * 10 ** 7 }}", "10,000,000 characters"),
        ("{{ raise_exception('only\x1b[2J assistants') }}", r"only\\x1b\[2J assistants"),
        ("{% if %}", "TemplateSyntaxError"),
    ],
)
def test_a_chat_template_is_bounded(
    speaking: Callable[[str], tuple[Any, Any]],
    monkeypatch: pytest.MonkeyPatch,
    template: str,
    reason: str,
) -> None:
    """One that runs without end, fills the memory or fails is refused in one line."""
    if reason == "longer":
        monkeypatch.setattr("attnviz.capture.sources.chat.SECONDS", 2)
    model, tokenizer = speaking("llama")
    tokenizer.chat_template = template
    with pytest.raises(ModelError, match=rf"the chat template of .* cannot be used: .*{reason}"):
        attnviz.generate("I love all", model, tokenizer, chat=True, max_new_tokens=2)


class Own(torch.nn.Module):
    """A module of one's own of random weights, with two heads in each of two layers, which reads 16 tokens."""

    def __init__(self, n_words: int, *, causal: bool = True, by_hand: bool = False) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.words = torch.nn.Embedding(n_words, 12)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(12, 36) for _ in range(2))
        self.causal, self.by_hand, self.weights = causal, by_hand, list[torch.Tensor]()

    def forward(self, numbers: torch.Tensor) -> Any:
        """The logits of the next word, and no loss."""
        if numbers.shape[1] > 16:
            raise ValueError("16 at most")
        x, self.weights = self.words(numbers) + torch.arange(numbers.shape[1])[:, None] / 8, []
        for layer in self.layers:
            q, k, v = (
                part.unflatten(-1, (2, 6)).transpose(1, 2) for part in layer(x).chunk(3, dim=-1)
            )
            hidden = torch.ones(numbers.shape[1], numbers.shape[1]).triu(1).bool() & self.causal
            self.weights.append((q @ k.mT / 6**0.5).masked_fill(hidden, -torch.inf).softmax(dim=-1))
            if self.by_hand:
                y = self.weights[-1] @ v
            else:
                y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
            x = x + y.transpose(1, 2).flatten(2)
        return x @ self.words.weight.T, None


class Words:
    """A tokenizer of one's own, as short as it can be."""

    def encode(self, text: str) -> list[int]:
        """The places of letters in the alphabet."""
        return [ord(letter) - ord("a") for letter in text]

    def decode(self, numbers: list[int]) -> str:
        """Letters again."""
        return "".join("abcdefgh"[number] for number in numbers)


class TestOwn:
    """A torch module of one's own, which reads the whole text anew at each step."""

    def test_rows_and_text_are_those_of_the_module(self) -> None:
        """Each token is the likeliest of the module's own logits, each row that of one pass over the finished text."""
        model = Own(8).train()
        steps: list[Step] = []
        record = attnviz.generate(
            "abc", model=model, tokenizer=Words(), max_new_tokens=6, on_step=steps.append
        )
        assert model.training
        numbers = torch.tensor([numbers_of(record)])
        logits = model(numbers)[0]
        assert logits[0, 2:-1].argmax(dim=-1).tolist() == numbers[0, 3:].tolist()
        assert record.target == Words().decode(numbers[0, 3:].tolist())
        weights = torch.cat(model.weights).detach().numpy()
        assert_equal(record.weights, chosen(weights, record))
        chances = [logits[0, 1 + step.number].softmax(dim=-1).max().item() for step in steps]
        np.testing.assert_allclose([step.probability for step in steps], chances, rtol=1e-4)
        assert record.kind == "decoder"
        assert [token.segment for token in record.key_tokens] == [0] * 3 + [2] * 5
        whole = attnviz.attend(f"abc{record.target}", model, Words()).weights
        assert_equal(record.weights, chosen(whole, record))
        assert record.receipt is not None
        assert (record.receipt.native, record.receipt.layers) == ("sdpa", (0, 1))

    def test_a_softmax_by_hand_without_a_tokenizer(self) -> None:
        """The rows are the module's own softmax; the bytes of the text are the tokens."""
        model = Own(256, by_hand=True)
        record = attnviz.generate("abc", model, max_new_tokens=4)
        model(torch.tensor([numbers_of(record)]))
        weights = torch.cat(model.weights).detach().numpy()
        assert_equal(record.weights, chosen(weights, record))
        codes = ["reads_bytes", "row_generates_token", "generation_stopped"]
        assert [note.code for note in record.notes] == codes
        assert record.proof == "✓ verified (the model's own softmax)"

    def test_its_positions_end(self) -> None:
        """Where it reads no more, the text ends, in the module's own words; a longer prompt is refused."""
        record = attnviz.generate("abc", Own(8), Words())
        assert len(record.key_tokens) == 16
        why = "Own in memory reads no more than 16 tokens (ValueError: 16 at most)"
        assert record.notes[-1] == attnviz.Note.of("reads_no_more", n=14, why=why)
        assert len(attnviz.generate("abcdefgh" * 2, Own(8), Words()).query_tokens) == 1
        with pytest.raises(
            ModelError, match=r"^Own in memory cannot be run on this text: ValueError: 16 at most$"
        ):
            attnviz.generate("abcdefgh" * 3, Own(8), Words())

    def test_refused(self) -> None:
        """Modules without logits over the vocabulary, or with attention to later tokens, are refused."""
        states, nothing, more = Own(8), Own(8), Words()
        states.register_forward_hook(lambda _module, _given, made: made[0] @ states.words.weight)
        nothing.register_forward_hook(lambda *_: {"scores": 1})
        more.n_vocab = 9  # type: ignore[attr-defined]
        no_logits, later = "no logits over its vocabulary", "its tokens look at later ones too"
        for model, prompt, tokenizer, words in (
            (states, "abc", Words(), rf"it returns the shape \(1, 3, 12\), {no_logits}$"),
            (nothing, "abc", Words(), f"it returns dict, {no_logits}$"),
            (Own(8), "abc", more, rf"it returns the shape \(1, 3, 8\), {no_logits} of 9 tokens$"),
            (Own(8, causal=False), "abc", Words(), later),
            (Own(8, causal=False), "a", Words(), later),
        ):
            with pytest.raises(ModelError, match=f"^Own in memory generates nothing: {words}"):
                attnviz.generate(prompt, model, tokenizer)
