"""Labels against the tokenizer's own word, for the ids that the model really receives."""

from __future__ import annotations

import itertools
import re
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch import nn

import attnviz
from attnviz.attention import Note
from attnviz.capture.attend import attend
from attnviz.text.notes import sentence
from tests.fixtures.zoo import SENTENCES, make_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attnviz.attention import Token
    from tests.fixtures.zoo import Zoo

TEXTS = (
    *SENTENCES,
    "Unbelievably, 2 naïve cafés cost 3,50 €  [today]\n\tor not?",
    "도서관에서 책을 읽어요 👩‍👩‍👧 ...",
    "I [SEP] you <s> and </s><unk>",
    "x",
)
CHAT = "{% for message in messages %}<{{ message.role }}> {{ message.content }}\n{% endfor %}<me> "
NAMES = {name: f"<{name}>" for name in ("pad", "unk", "cls", "sep")}
NAMES |= {"bos": "<s>", "eos": "</s>"}
SPECIALS = list(NAMES.values())
KINDS = (
    *("wordpiece", "words", "characters", "bpe with ends of words", "unigram with bytes"),
    *("gpt2", "roberta", "metaspace", "byt5"),
)


def learn(kind: str) -> Tokenizer:
    """Return a tokenizer of this kind, with a vocabulary learned from some of the texts."""
    settings: dict[str, Any] = {"vocab_size": 150, "special_tokens": SPECIALS}
    if kind == "words":
        tokenizer = Tokenizer(models.WordLevel(unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        trainer: Any = trainers.WordLevelTrainer(**settings, show_progress=False)
    elif kind == "characters":
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
        tokenizer.decoder = decoders.Fuse()
        settings["vocab_size"] = 60
        trainer = trainers.BpeTrainer(**settings, show_progress=False)
    else:
        tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.BPEDecoder()
        trainer = trainers.BpeTrainer(**settings, end_of_word_suffix="</w>", show_progress=False)
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.train_from_iterator(TEXTS[:3], trainer)
    ends = [(name, SPECIALS.index(name)) for name in ("<cls>", "<sep>")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<cls> $A <sep>", pair="<cls> $A <sep> $B:1 <sep>:1", special_tokens=ends
    )
    return tokenizer


def tokenizer_of(kind: str, real_model: str) -> Any:
    """Return a tokenizer of transformers of this kind."""
    import transformers

    if kind == "byt5":
        return transformers.ByT5Tokenizer()
    if kind in {"wordpiece", "gpt2", "roberta", "metaspace"}:
        return make_tokenizer(kind, real_model)
    if kind == "unigram with bytes":
        pieces = [(name, 0.0) for name in SPECIALS]
        pieces += [(f"<0x{byte:02X}>", -9.0) for byte in range(256)]
        pieces += [("▁I", -1.0), ("▁", -2.0), ("▁love", -2.0), ("▁all", -2.0), ("나는", -3.0)]
        tokenizer = Tokenizer(models.Unigram(pieces, unk_id=1, byte_fallback=True))
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        tokenizer.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        )
    else:
        tokenizer = learn(kind)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{f"{name}_token": token for name, token in NAMES.items()}
    )


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """A kind of tokenizer."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def tokenizer(kind: str, real_model: str) -> Any:
    """A tokenizer of each kind."""
    tokenizer = tokenizer_of(kind, real_model)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    tokenizer.chat_template = CHAT
    return tokenizer


@pytest.fixture(scope="module")
def reader(tokenizer: Any) -> Any:
    """An encoder with word vectors for a tokenizer."""
    return tiny("Bert", tokenizer)


def tiny(name: str, tokenizer: Any) -> Any:
    """Return a tiny model of transformers for a tokenizer."""
    import transformers

    config = getattr(transformers, f"{name.removesuffix('LMHead')}Config")(
        vocab_size=len(tokenizer),
        hidden_size=24,
        num_attention_heads=3,
        num_hidden_layers=2,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        max_position_embeddings=256,
    )
    torch.manual_seed(0)
    return getattr(transformers, f"{name}Model")(config).eval()


@contextmanager
def received(model: Any) -> Iterator[list[list[int]]]:
    """Collect the ids that a model's table of word vectors receives, a list for each sentence."""
    rows: list[list[int]] = []
    hook = model.get_input_embeddings().register_forward_pre_hook(
        lambda _, inputs: rows.extend(inputs[0].tolist())
    )
    try:
        yield rows
    finally:
        hook.remove()


def check(
    tokens: Sequence[Token], ids: Sequence[int], tokenizer: Any, *, is_whole: bool = True
) -> None:
    """Compare the tokens of a record with what the tokenizer says of the ids that the model received.

    If the text is not whole, because it is cut or generated, some bytes may belong to no known character.
    """
    assert [token.id for token in tokens] == list(ids)
    for token, number in zip(tokens, ids, strict=True):
        piece = tokenizer.convert_ids_to_tokens(number)
        assert token.piece == piece
        said = tokenizer.decode([number], clean_up_tokenization_spaces=False).removeprefix("##")
        label = token.text.removeprefix("·")
        if number in tokenizer.all_special_ids:
            assert label.split("→")[-1] == piece
        elif "\ufffd" in said or (not said and piece.strip("▁")):
            assert re.fullmatch(r".+ \d+/\d+", label) or (label == "\ufffd" and not is_whole)
        elif re.fullmatch("[\u1100-\u11ff]", said):
            # Fonts do not draw a conjoining Korean letter alone, so the letter itself stands for it.
            names = [unicodedata.name(letter).split()[-1] for letter in (said, label)]
            assert names[0] == names[1]
        elif len(said) == 1 and unicodedata.category(said) == "Cc" and not said.isspace():
            assert label == repr(said)[1:-1]  # generated
        elif said.strip():
            assert label == said.strip()
        else:
            assert set(label) <= {"␣", "\\", "n", "t"}


def test_sentences(reader: Any, tokenizer: Any) -> None:
    """Every kind of text, alone and as a pair with special tokens between."""
    for text, pair in [(text, None) for text in TEXTS] + [*itertools.pairwise(TEXTS)]:
        with received(reader) as ids:
            record = attnviz.attend(text, reader, tokenizer, pair=pair)
        check(record.query_tokens, ids[-1], tokenizer)


def test_words_as_a_list(tokenizer: Any, reader: Any) -> None:
    """The model reads the words with spaces between them, and each token belongs to the word given."""
    words = ["I", "love", "don't", "all"]
    record = attnviz.attend(words, reader, tokenizer)
    np.testing.assert_array_equal(
        record.weights, attnviz.attend(" ".join(words), reader, tokenizer).weights
    )
    numbers = [token.word for token in record.key_tokens if token.word is not None]
    assert sorted({*numbers}) == [0, 1, 2, 3]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("side", ["left", "right"])
def test_truncation(
    reader: Any, tokenizer: Any, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever side is cut off."""
    monkeypatch.setattr(tokenizer, "truncation_side", side)
    monkeypatch.setattr(tokenizer, "model_max_length", 7)
    for text, pair in ((TEXTS[1], None), (TEXTS[3], None), (TEXTS[1], TEXTS[2])):
        with received(reader) as ids:
            record = attnviz.attend(text, reader, tokenizer, pair=pair)
        assert len(record.query_tokens) <= 7
        check(record.query_tokens, ids[0], tokenizer, is_whole=False)


@pytest.mark.parametrize("chat", [False, True])
def test_prompts(tokenizer: Any, *, chat: bool) -> None:
    """A prompt and its continuation, as they are or in a chat template."""
    writer = tiny("GPT2LMHead", tokenizer)
    with received(writer) as ids:
        record = attnviz.generate("I love\nyou 나", writer, tokenizer, max_new_tokens=3, chat=chat)
    read = [number for row in ids for number in row]
    # The keys are all tokens that the model read: not the last one that it generated.
    check(record.key_tokens, read, tokenizer, is_whole=False)


def test_a_cut_text_of_bytes() -> None:
    """A tokenizer that reports no offsets, and a text that is cut: its characters are known all the same."""
    import transformers

    tokenizer = transformers.ByT5Tokenizer(model_max_length=9)
    tokenizer.cls_token = tokenizer.pad_token
    record = attnviz.attend("나 사랑해", tiny("Bert", tokenizer), tokenizer)
    labels = "|".join(token.text for token in record.query_tokens)
    assert labels == "나 1/3|나 2/3|나 3/3|␣|사 1/3|사 2/3|사 3/3|·\ufffd|</s>"


def test_padding_of_an_own_tokenizer() -> None:
    """A tokenizer of the package tokenizers that pads: the module reads the sentence as it reads it alone."""
    tokenizer = learn("characters")
    layer = nn.TransformerEncoderLayer(16, 2, 20, batch_first=True)
    module = nn.Sequential(nn.Embedding(60, 16), layer)
    alone = attnviz.attend("I love", module, tokenizer)
    for direction in ("left", "right"):
        tokenizer.enable_padding(direction=direction, length=12, pad_id=1, pad_token="<pad>")
        record = attnviz.attend("I love", module, tokenizer)
        assert record.query_tokens == alone.query_tokens
        assert np.array_equal(record.weights, alone.weights)


def tokens_of(zoo: Zoo, name: str, text: str) -> list[Token]:
    """The tokens of a text, without those that the tokenizer added."""
    return [token for token in attend(text, zoo.source(name)).query_tokens if not token.special]


@pytest.mark.parametrize(
    ("name", "text", "labels"),
    [
        # A piece that continues a word has a dot for its mark (##).
        ("distilbert", "unhappily tokenized", "un|·ha|·pp|·ily|token|·ized"),
        ("distilbert", "didn't", "didn|·'|·t"),
        # Korean letters are shown in the form that fonts draw alone, not as empty boxes.
        ("distilbert", "사랑", "ㅅ|·ㅏ|·ㄹ|·ㅏ|·ㅇ"),
        # An unknown word is shown with the token that the model reads.
        ("distilbert", "I 🙂 you", "i|🙂→[UNK]|you"),
        ("distilbert", "我们", "我|们→[UNK]"),
        # The mark of a space (Ġ, ▁) is no part of the label; more spaces than one are seen.
        ("gpt2", "I love all you", "I|love|all|you"),
        ("gpt2", "I  love\nyou", "I|␣|love|\\n|you"),
        ("roberta", "I  love\nyou", "I|␣|love|\\n|you"),
        ("llama", "I love all you", "I|love|all|you"),
        ("llama", "I  love", "I|␣|love"),
        ("llama", "I\nI", "I|\\n|I"),
        # A character in several tokens is shown in each, with the number of its part.
        ("gpt2", "I 너", "I|␣|너 1/3|너 2/3|너 3/3"),
        ("roberta", "I 너", "I|␣|너 1/3|너 2/3|너 3/3"),
        ("gpt2", "🙂🙂", "🙂 1/4|🙂 2/4|🙂 3/4|🙂 4/4|🙂 1/4|🙂 2/4|🙂 3/4|🙂 4/4"),
        ("llama", "사랑해", "사랑해"),
        ("llama", "I 한🙂", "I|␣|한 1/3|한 2/3|한 3/3|🙂 1/4|🙂 2/4|🙂 3/4|🙂 4/4"),
    ],
)
def test_labels(zoo: Zoo, name: str, text: str, labels: str) -> None:
    """Each token is shown as a person reads it, whatever the marks of its vocabulary."""
    assert [token.text for token in tokens_of(zoo, name, text)] == labels.split("|")


def test_words_and_pieces(zoo: Zoo) -> None:
    """Pieces of a word have its number; Chinese characters are words; a piece is spelled as in the vocabulary."""
    words = [token.word for token in tokens_of(zoo, "distilbert", "unhappily tokenized")]
    assert words == [0, 0, 0, 0, 1, 1]
    assert [token.word for token in tokens_of(zoo, "distilbert", "我们")] == [0, 1]
    pieces = [token.piece for token in tokens_of(zoo, "llama", "I 한")]
    assert pieces == ["▁I", "▁", "<0xED>", "<0x95>", "<0x9C>"]


@pytest.mark.parametrize(
    ("name", "text", "note"),
    [
        ("distilbert", "I 사랑", Note.of("syllables_broken", syllable="사", n=2)),
        ("gpt2", "나는 너희", Note.of("syllables_broken", syllable="너", n=3)),
        ("t5", "나", Note.of("syllables_broken", syllable="나", n=3)),
    ],
)
def test_broken_syllables(zoo: Zoo, name: str, text: str, note: Note) -> None:
    """The first syllable of letters or bytes is an example in the note that says why tokens look broken."""
    assert attend(text, zoo.source(name)).notes == (note,)
    assert sentence(note).startswith("The vocabulary has no Korean syllables")
