"""Focus and dilution (arXiv 2605.01199): embeddings condense, attention focuses on the frequent token, then dilutes."""
