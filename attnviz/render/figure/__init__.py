"""The shared parts of all figures: lengths, text measuring, the page with caption and colour bar, files."""
