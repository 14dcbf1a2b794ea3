"""Layer 3: losses and laws of motion."""
