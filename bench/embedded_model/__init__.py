"""The recipe of the embedded model: scenes, conversations, training and evaluation."""
