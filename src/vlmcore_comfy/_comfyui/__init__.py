"""The door to ComfyUI: nothing outside imports it, and ComfyUI reaches us through it."""
