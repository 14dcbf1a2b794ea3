"""Other people's training: watched as it runs, or read from its checkpoints."""
