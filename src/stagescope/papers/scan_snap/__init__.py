"""Scan and snap (arXiv 2305.16380): attention in token-pair logits drops common tokens, then freezes."""
