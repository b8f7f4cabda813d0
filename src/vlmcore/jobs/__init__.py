"""Jobs over many images: a folder in, a caption beside every image or a table out."""
