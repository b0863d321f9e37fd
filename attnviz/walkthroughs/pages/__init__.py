"""Pages of walkthroughs, as HTML and Markdown."""
