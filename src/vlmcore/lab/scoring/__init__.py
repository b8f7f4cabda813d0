"""How good an answer is: one evaluator a module, each with its reason."""
