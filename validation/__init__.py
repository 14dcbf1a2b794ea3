"""The long checks: each module's `main` prints a table and returns whether all of it holds. Run with `make validate`."""
