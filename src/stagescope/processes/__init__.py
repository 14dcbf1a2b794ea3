"""Where tokens come from: what every process is, and Markov chains."""
