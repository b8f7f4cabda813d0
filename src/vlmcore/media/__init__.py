"""Images: from whatever a person has to RGB pixels, and back."""
