// Package openai drives models behind the OpenAI chat protocol: OpenAI itself,
// vLLM, llama.cpp, LM Studio, gateways, and Ollama's second interface.
package openai
