"""Where the images of a job come from."""
