"""Vision-language models: what they are asked, how they are loaded, what they answer."""
