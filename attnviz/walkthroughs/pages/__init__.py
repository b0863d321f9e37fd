"""A walkthrough as a page: its content, then LaTeX, HTML and Markdown."""
