"""Text that belongs to no paper: reading, vocabulary, windows, known corpora."""
