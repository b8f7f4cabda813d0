"""Models behind servers: vLLM, SGLang, llama.cpp, Ollama, LM Studio, and hosted providers."""
