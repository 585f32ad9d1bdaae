// Package openai drives models behind the OpenAI chat protocol: OpenAI itself,
// vLLM, llama.cpp, LM Studio, gateways, and Ollama's second interface. It is
// [github.com/sashabaranov/go-openai] over [remote.Client].
package openai
