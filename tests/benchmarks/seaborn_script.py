"""The script that people write today: the same, then one seaborn heatmap with labels and numbers for each head.

Usage: python seaborn_script.py MODEL_FOLDER TEXT OUTPUT.png
"""

from __future__ import annotations

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import seaborn as sns
import torch
from transformers import AutoModel, AutoTokenizer


def main(model_folder: str, text: str, output: str) -> None:
    """Draw every head of every layer, as a grid."""
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model = AutoModel.from_pretrained(model_folder, attn_implementation="eager").eval()
    encoded = tokenizer(text, return_tensors="pt")
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
    with torch.inference_mode():
        attentions = model(**encoded, output_attentions=True).attentions
    n_layers, n_heads = len(attentions), attentions[0].shape[1]
    figure, axes = plt.subplots(n_layers, n_heads, figsize=(5 * n_heads, 5 * n_layers))
    for layer in range(n_layers):
        for head in range(n_heads):
            ax = axes[layer, head]
            weights = attentions[layer][0, head].numpy()
            sns.heatmap(
                weights, xticklabels=tokens, yticklabels=tokens, annot=True, fmt=".2f", ax=ax
            )
            ax.set_title(f"layer {layer}, head {head}")
    figure.tight_layout()
    figure.savefig(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
