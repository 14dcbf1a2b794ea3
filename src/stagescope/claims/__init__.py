"""Claims, verdicts and ledgers: sentences that a run can confirm or violate. Knows no paper."""
