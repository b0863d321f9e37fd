"""Files: atomic writing, formats of results, records, corpora."""
