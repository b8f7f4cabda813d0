"""Engines that run models. Reached through `vlmcore.vlm.loading` only: they import heavy parts."""
