"""How many tokens a second are generated with capture, beside the library's plain ``generate``; ratios of one run.

Models of the sizes of GPT-2 and of a small Llama with grouped heads, with random weights.

    python tests/benchmarks/generation.py
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import attnviz

if TYPE_CHECKING:
    from collections.abc import Callable

NEW, ROUNDS = 64, 3
PROMPT = "a b c d e f g h i j k l m n o p"
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "GPT-2, 12 layers of 12 heads": ("GPT2", {"n_positions": 512}),
    "Llama, 12 layers of 12 heads, 4 of keys": (
        "Llama",
        {
            "hidden_size": 768,
            "intermediate_size": 2048,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
        }
        | {"num_key_value_heads": 4},
    ),
}


def made(kind: str, sizes: dict[str, Any]) -> tuple[Any, Any]:
    """A model with random weights that never comes to an end, and a tokenizer of letters."""
    words = {letter: number for number, letter in enumerate("abcdefghijklmnopqrstuvwxyz")}
    backend = Tokenizer(models.WordLevel(words | {"[UNK]": 26}, unk_token="[UNK]"))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.Whitespace(), decoders.Fuse()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]")
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=27, eos_token_id=None, bos_token_id=None, **sizes
    )
    torch.manual_seed(0)
    return transformers.AutoModelForCausalLM.from_config(config).eval(), tokenizer


def seconds(run: Callable[[], object]) -> float:
    """How long a call takes."""
    since = time.perf_counter()
    run()
    return time.perf_counter() - since


def main() -> None:
    """Measure each model: plain and captured by turns, so that both see the same machine."""
    for name, (kind, sizes) in MODELS.items():
        model, tokenizer = made(kind, sizes)
        given = torch.tensor([tokenizer(PROMPT)["input_ids"]])

        def plain(model: Any = model, given: torch.Tensor = given) -> None:
            model.set_attn_implementation("sdpa")
            model.generate(
                given, attention_mask=torch.ones_like(given), max_new_tokens=NEW, do_sample=False
            )

        def captured(model: Any = model, tokenizer: Any = tokenizer) -> None:
            attnviz.generate(PROMPT, model, tokenizer, max_new_tokens=NEW)

        plain()
        captured()
        times = [(seconds(plain), seconds(captured)) for _ in range(ROUNDS)]
        usual, ours = (NEW / statistics.median(column) for column in zip(*times, strict=True))
        print(
            f"{name}: plain {usual:.1f} tokens a second, with capture {ours:.1f}: {ours / usual:.2f} times"
        )


if __name__ == "__main__":
    main()
