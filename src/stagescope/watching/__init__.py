"""Other people's training: watched live in PyTorch, or read from checkpoints and logs. Torch is loaded when used."""
