"""One page for every figure: lengths, texts that are measured, caption, colour bar, files."""
