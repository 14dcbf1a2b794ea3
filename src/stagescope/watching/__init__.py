"""Other people's training as runs, and runs for other people's tools."""
