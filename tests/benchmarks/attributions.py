"""How often `attnviz attribute` gives the right verdict where it is known, and what else its docs say in figures.

Usage: python tests/benchmarks/attributions.py [PART ...] [-n NUMBER] [-m MODEL]

- circuit: a decoder made by hand, 200 random layouts; the verdict of each kind of token
- induction: a trained decoder that copies what followed a letter before, 500 cases; the copied letter is used
- pronouns: toy's “it” and toy-ko's 자기 and 그것, 100 held-out sentences each; the noun is used
- translations: toy-transformer, a word of each of 100 held-out pairs; the word that it translates is used
- random: the same models and BERTs with random weights; the share of judged tokens that are used, which should be none
- agreement: the first 40 sentences of the shipped treebank; by rank over words, cuts and weights against hidden words
- sentences: six sentences; what is used, and where the largest numbers of each column are

Without PART it runs all. NUMBER is that of layouts, cases and sentences of each part. MODEL is a pretrained encoder.
"""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch

import attnviz
from attnviz.attributions.build import build
from attnviz.attributions.verdicts import USED
from attnviz.capture.source import DEFAULT_MODEL
from attnviz.capture.sources.home_built import CircuitSource
from attnviz.heads.api import TREEBANK
from attnviz.models.circuit import RIGHT
from attnviz.models.config import Language
from attnviz.models.language import splits
from attnviz.storage.corpora.corpus import read_corpus
from attnviz.text.corpus import CorpusLine
from tests.fixtures import induction as copying

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from attnviz.attributions.record import Attribution
    from attnviz.capture.sources import Source

SEED = 101  # of held-out sentences that no other figure is from
LANGUAGES: dict[str, Language] = {"toy": "english", "toy-ko": "korean"}
PRONOUNS = (
    ("toy", "reference", "it"),
    ("toy-ko", "own", "자기"),
    ("toy-ko", "reference", "그것"),
)
# A sentence, and the word whose vector is watched.
NAMED = (
    ("The animal didn't cross the street because it was too tired.", "it"),
    ("The trophy does not fit in the suitcase because it is too big.", "it"),
    ("She is eating a green apple.", "eating"),
    ("The nurse who helped the doctor said that she was tired.", "she"),
    ("The keys to the cabinet are on the table.", "are"),
    ("They visited Paris in France because it was big.", "it"),
)


# An attribution, and the places of the tokens one of which is right.
Case: TypeAlias = "tuple[Attribution, Sequence[int]]"


def used(found: Attribution) -> list[int]:
    """Return the places of the tokens that are used, here or through other words."""
    return [n for n, verdict in enumerate(found.verdicts) if verdict and verdict.name in USED]


def told(found: Attribution, right: Sequence[int]) -> str:
    """Return a case that failed: its text, its output, and the verdicts on the tokens that should be used."""
    verdicts = [(found.tokens[n].text, found.verdicts[n]) for n in right]
    names = ", ".join(f"“{text}” {'not tested' if v is None else v.name}" for text, v in verdicts)
    instead = ", ".join(f"“{found.tokens[n].text}”" for n in used(found)) or "nothing"
    return f"  {found.text} | {found.output.text} | {names}; used: {instead}"


def count(what: str, cases: Iterable[Case]) -> None:
    """Print in how many cases one of the right tokens is used, and the others."""
    right, wrong = Counter[str](), list[str]()
    for found, places in cases:
        right["all"] += 1
        right["used"] += bool({*used(found)} & {*places})
        right["largest"] += found.chosen in places
        if not {*used(found)} & {*places}:
            wrong.append(told(found, places))
    n = right["all"]
    print(f"{what}: used in {right['used']} of {n}, the largest cut in {right['largest']}")
    for line in wrong:
        print(line, flush=True)


def circuit(n: int = 200) -> None:
    """The seven kinds of tokens of the circuit."""
    right, wrong = Counter[str](), list[str]()
    for seed in range(n):
        source = CircuitSource(seed)
        found = build(source, "a layout", of="next", judged=20)
        for kind, verdict in zip(source.order, found.verdicts, strict=True):
            if kind in RIGHT:
                name = "not tested" if verdict is None else verdict.name
                right[kind] += name == RIGHT[kind]
                if name != RIGHT[kind]:
                    wrong.append(f"  layout {seed}, {kind}: {name}")
    for kind, known in RIGHT.items():
        print(f"circuit, {kind} ({known}): {right[kind]} of {n}")
    for line in wrong:
        print(line, flush=True)


def induction(n: int = 500) -> None:
    """The letter that is copied."""
    source = attnviz.open_source(str(copying.FILE))
    print(f"induction: the next letter is right in {copying.accuracy(n):.1%}")
    cases = copying.cases(n)
    count("induction, the copied letter", ((build(source, c.text), [c.place]) for c in cases))


def pronouns(n: int = 100) -> None:
    """The noun that a pronoun stands for."""
    for name, kind, pronoun in PRONOUNS:
        source: Any = attnviz.open_source(name)

        def cases(kind: str = kind, source: Any = source) -> Iterator[Case]:
            for sentence in islice(splits.sentences("test", SEED, kind, source.language), n):
                known = sentence.reference
                assert known is not None
                text = splits.line_of(sentence).text
                yield build(source, text, of=str(known.pronoun)), [known.noun]

        count(f"{name}, the noun of {pronoun}", cases())


def translations(n: int = 100) -> None:
    """The English word that a Korean word translates, in pairs that the model translates without a fault."""
    source, random = attnviz.open_source("toy-transformer"), Random(SEED)
    all_cases, needed = list[Case](), list[Case]()
    faults = 0
    for pair in splits.pairs("test", SEED):
        if len(all_cases) == n:
            break
        text = " ".join(pair.english)
        written = source.encode([text], kind="cross").sentences[0].tokens
        if tuple(token.text for token in written if not token.special) != pair.korean:
            faults += 1
            continue
        place = random.choice(sorted({korean for korean, _ in pair.sure}))
        right = [english for korean, english in pair.sure if korean == place]
        found = build(source, text, word=str(place))
        all_cases.append((found, right))
        # Some words follow from the Korean words before them: the right one is as likely with the English word hidden.
        assert found.after is not None
        if min(found.after[2][right]) < 0.5:
            needed.append((found, right))
    print(f"toy-transformer: left out {faults} pairs that it translates otherwise")
    count("toy-transformer, the translated word", all_cases)
    count("of these, where the word is lost when it is hidden", needed)


def random_bert(seed: int, scale: float, words: Sequence[str]) -> Source:
    """Return a small BERT with random weights, so many times as large as its library draws them."""
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    numbers = {word: number for number, word in enumerate([*names, *words])}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    named = {f"{name[1:-1].lower()}_token": name for name in names}
    sizes: dict[str, Any] = {"hidden_size": 96, "intermediate_size": 192, "num_hidden_layers": 4}
    torch.manual_seed(seed)
    model = transformers.BertModel(
        transformers.BertConfig(vocab_size=len(numbers), num_attention_heads=6, **sizes)
    )
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(scale)
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **named)
    return attnviz.as_source(model.eval(), fast)


def untrained(source: Source, texts: Sequence[str]) -> Iterator[tuple[Source, str]]:
    """Yield each text with the model with other random weights."""
    for seed, text in enumerate(texts):
        yield source.untrained(seed), text


def berts(scale: float, words: Sequence[str], texts: Sequence[str]) -> Iterator[tuple[Source, str]]:
    """Yield each text with another random BERT."""
    for seed, text in enumerate(texts):
        yield random_bert(seed, scale, words), text


def random_weights(n: int = 300) -> None:
    """Judged tokens of random models that are called used: a new model for each sentence, and a random word of it."""
    texts = {
        name: [splits.line_of(s).text for s in islice(splits.sentences("test", SEED, None, of), n)]
        for name, of in LANGUAGES.items()
    }
    texts["toy-transformer"] = [" ".join(p.english) for p in islice(splits.pairs("test", SEED), n)]
    letters = [case.text for case in copying.cases(n)]
    words = sorted({word for text in texts["toy"] for word in text.split()})
    families = {name: untrained(attnviz.open_source(name), texts[name]) for name in texts}
    short = [" ".join(text.split()[: 2 + k % 3]) for k, text in enumerate(texts["toy"])]
    families["toy, 2 to 4 words"] = untrained(attnviz.open_source("toy"), short)
    families["toy, the sentence"] = untrained(attnviz.open_source("toy"), texts["toy"])
    families["toy-decoder"] = untrained(attnviz.open_source("toy-decoder"), texts["toy"])
    families["induction"] = untrained(attnviz.open_source(str(copying.FILE)), letters)
    for scale in (1, 3, 6):
        families[f"BERT, x {scale}"] = berts(scale, words, texts["toy"])
    for name, models in families.items():
        verdicts, random = Counter[str](), Random(SEED)
        for source, text in models:
            if verdicts.total() >= n:
                break
            is_encoder = source.kinds[0] == "encoder"
            place = random.randrange(len(source.encode([text]).sentences[0].tokens))
            is_word = is_encoder and "sentence" not in name
            found = build(source, text, of=str(place) if is_word else None)
            verdicts.update(verdict.name for verdict in found.verdicts if verdict is not None)
        kinds = ", ".join(f"{verdicts[name]} {name}" for name in sorted(USED))
        share = sum(verdicts[name] for name in USED) / verdicts.total()
        print(
            f"random weights, {name}: {share:.1%} of {verdicts.total()} tokens ({kinds})",
            flush=True,
        )


def ranks(source: Source, n: int) -> None:
    """Print how far cuts everywhere, weights and lengths agree by rank with hidden words, in the mean of sentences."""
    from scipy.stats import spearmanr

    lines = [line for line in read_corpus(TREEBANK) if isinstance(line, CorpusLine)]
    agreed: dict[str, list[float]] = {}
    for line in lines[:n]:
        found = build(source, line.text, of="sentence", judged=0)
        # A word is the mean of its pieces; [CLS], [SEP] and punctuation are no words.
        words: dict[int, list[int]] = {}
        for place, token in enumerate(found.tokens):
            if token.word is not None and any(letter.isalnum() for letter in token.text):
                words.setdefault(token.word, []).append(place)
        if len(words) < 4:  # too few to rank
            continue
        columns = {
            name: [float(np.mean(getattr(found, name)[places])) for places in words.values()]
            for name in ("everywhere", "weight", "carried", "hidden")
        }
        for name in ("everywhere", "weight", "carried"):
            by_rank = spearmanr(columns[name], columns["hidden"]).statistic
            agreed.setdefault(name, []).append(float(by_rank))
    means = ", ".join(f"{name} {np.mean(values):.2f}" for name, values in agreed.items())
    print(f"{source.name}, {n} sentences, agreement with hidden: {means}", flush=True)


def agreement(n: int = 40, model: str = DEFAULT_MODEL) -> None:
    """The same of a pretrained encoder, and of one with random weights."""
    source = attnviz.open_source(model)
    ranks(source, n)
    ranks(source.untrained(), n)


def sentences(n: int = len(NAMED), model: str = DEFAULT_MODEL) -> None:
    """What is used in six sentences, and the largest of each column; changes beside those of the controls."""
    source = attnviz.open_source(model)
    print("| sentence | used | most weight | most carried | most hidden |\n|---|---|---|---|---|")
    n_judged = n_doubtful = 0
    for text, word in NAMED[:n]:
        draws = [build(source, text, of=word, judged=100, seed=seed) for seed in range(3)]
        found, n_judged = draws[0], n_judged + len(draws[0].tokens)
        times = Counter(place for draw in draws for place in used(draw))
        n_doubtful += sum(number < len(draws) for number in times.values())

        def told(place: int, found: Attribution = found) -> str:
            verdict = found.verdicts[place]
            here = None if verdict is None else verdict.here
            numbers = "" if here is None else f" {here.change:.0%} ({here.controls:.0%})"
            return f"{found.tokens[place].text}{numbers}"

        others = np.array([place not in found.output.rows for place in range(len(found.tokens))])
        names = ", ".join(
            told(place) for place in sorted(used(found), key=lambda k: -found.here[k])
        )
        largest = [
            told(int(np.argmax(np.where(others, column, -1))))
            for column in (found.weight, found.carried, found.hidden)
        ]
        marked = text.replace(f" {word} ", f" *{word}* ", 1)
        print("|", " | ".join([marked, names, *largest]), "|", flush=True)
    print(
        f"used in some of three draws of the controls, and not in all: {n_doubtful} of {n_judged}"
    )


PARTS = {
    "circuit": circuit,
    "induction": induction,
    "pronouns": pronouns,
    "translations": translations,
    "random": random_weights,
    "agreement": agreement,
    "sentences": sentences,
}


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="PART", default=list(PARTS))
    parser.add_argument("-n", type=int, metavar="NUMBER")
    parser.add_argument("-m", "--model", default=DEFAULT_MODEL)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for part in asked.parts:
        given: dict[str, Any] = {} if asked.n is None else {"n": asked.n}
        if PARTS[part] in (agreement, sentences):
            given["model"] = asked.model
        PARTS[part](**given)


if __name__ == "__main__":
    main()
