"""Where the captions of a job go."""
