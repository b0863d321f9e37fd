"""The least that any program must do to see attention: import, load, run, write raw numbers.

Usage: python least_script.py MODEL_FOLDER TEXT OUTPUT.npy
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer


def main(model_folder: str, text: str, output: str) -> None:
    """Write the weights of every head, (layer, head, query, key)."""
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model = AutoModel.from_pretrained(model_folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        attentions = model(
            **tokenizer(text, return_tensors="pt"), output_attentions=True
        ).attentions
    np.save(output, torch.cat(attentions).numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
