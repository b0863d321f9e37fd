"""Files: written whole or not at all, what each result is written as, records, corpora."""
