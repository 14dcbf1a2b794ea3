"""The full student: model, loss, and its pass by Numba and BLAS."""
