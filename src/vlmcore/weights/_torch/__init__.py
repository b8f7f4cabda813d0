"""Weights as tensors of torch; reached through the modules beside this package."""
