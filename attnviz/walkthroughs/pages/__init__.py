"""A walkthrough as a page: its content, then HTML and Markdown."""
