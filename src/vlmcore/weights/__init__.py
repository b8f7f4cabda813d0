"""Files of weights: read, checked and written, bounded, without a framework."""
