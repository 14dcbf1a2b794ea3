"""A run as one offline page, as static figures, and as a summary in a notebook."""
