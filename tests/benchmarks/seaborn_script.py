"""The script that people write today: run the model, then draw each head as a seaborn heatmap with labels.

Usage: python seaborn_script.py MODEL_FOLDER TEXT FOLDER [grid]

It writes one picture with numbers for each head, or with `grid` all heads in one picture, without numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import torch
from transformers import AutoModel, AutoTokenizer


def main(model_folder: str, text: str, folder: str, layout: str = "") -> None:
    """Draw every head of every layer."""
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model = AutoModel.from_pretrained(model_folder, attn_implementation="eager").eval()
    encoded = tokenizer(text, return_tensors="pt")
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
    with torch.inference_mode():
        attentions = model(**encoded, output_attentions=True).attentions
    labels = {"xticklabels": tokens, "yticklabels": tokens}
    n_layers, n_heads = len(attentions), attentions[0].shape[1]
    Path(folder).mkdir(exist_ok=True)
    if layout == "grid":
        figure, axes = plt.subplots(n_layers, n_heads, figsize=(3 * n_heads, 3 * n_layers))
        for (layer, head), ax in np.ndenumerate(axes):
            sns.heatmap(attentions[layer][0, head].numpy(), **labels, cbar=False, ax=ax)
            ax.set_title(f"layer {layer}, head {head}")
        figure.tight_layout()
        figure.savefig(f"{folder}/heads.png")
        return
    for layer in range(n_layers):
        for head in range(n_heads):
            figure, ax = plt.subplots()
            weights = attentions[layer][0, head].numpy()
            sns.heatmap(weights, **labels, annot=True, fmt=".2f", ax=ax)
            ax.set_title(f"layer {layer}, head {head}")
            figure.savefig(f"{folder}/{layer}.{head}.png")
            plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
