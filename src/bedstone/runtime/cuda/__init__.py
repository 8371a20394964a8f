"""The CUDA device: one GPU through the driver API, launches flat, repeats as graphs."""
