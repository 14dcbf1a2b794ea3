"""Layer 6: closed forms, claims and their ledger."""
