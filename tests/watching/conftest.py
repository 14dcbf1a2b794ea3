"""One thread for PyTorch: test processes that run side by side would wait for each other's threads."""

import torch

torch.set_num_threads(1)
