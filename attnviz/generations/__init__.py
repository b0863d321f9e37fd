"""Generated text, and what each new token attends to."""
