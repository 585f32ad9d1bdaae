package main

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
)

// The shape of the tiny model: a llama of two layers with random weights and a
// vocabulary of bytes. It answers gibberish, over the real wire.
const (
	width         = 64
	layers        = 2
	heads         = 4
	hidden        = 128
	contextLength = 16384 // room for the window of a run, a token a byte
)

type gguf struct {
	values, tensors, data bytes.Buffer
	nValues, nTensors     uint64
	rng                   *rand.Rand
}

// put writes a text behind its length, and numbers in little endian.
func put(b *bytes.Buffer, v any) {
	if s, ok := v.(string); ok {
		put(b, uint64(len(s)))
		b.WriteString(s)
		return
	}
	_ = binary.Write(b, binary.LittleEndian, v) // a Buffer takes everything
}

// value adds a value under a key, behind the number that GGUF has for its type
// (github.com/ggml-org/ggml, docs/gguf.md).
func (g *gguf) value(key string, v any) {
	const anUint32, anInt32, aFloat32, aString, anArray uint32 = 4, 5, 6, 8, 9
	g.nValues++
	put(&g.values, key)
	switch v := v.(type) {
	case int:
		put(&g.values, anUint32)
		put(&g.values, uint32(v))
	case float32:
		put(&g.values, aFloat32)
		put(&g.values, v)
	case string:
		put(&g.values, aString)
		put(&g.values, v)
	case []int32:
		put(&g.values, [2]uint32{anArray, anInt32})
		put(&g.values, uint64(len(v)))
		put(&g.values, v)
	case []string:
		put(&g.values, [2]uint32{anArray, aString})
		put(&g.values, uint64(len(v)))
		for _, s := range v {
			put(&g.values, s)
		}
	}
}

// alignment of tensors within the file.
const alignment = 32

func pad(b *bytes.Buffer) {
	for b.Len()%alignment != 0 {
		b.WriteByte(0)
	}
}

// tensor adds one of float32: random, or ones for a norm.
func (g *gguf) tensor(name string, norm bool, dims ...int) {
	g.nTensors++
	pad(&g.data)
	put(&g.tensors, name)
	put(&g.tensors, uint32(len(dims)))
	n := 1
	for _, d := range dims {
		put(&g.tensors, uint64(d))
		n *= d
	}
	put(&g.tensors, uint32(0)) // F32
	put(&g.tensors, uint64(g.data.Len()))
	w := make([]float32, n)
	for i := range w {
		if w[i] = 1; !norm {
			w[i] = float32(0.05 * g.rng.NormFloat64())
		}
	}
	put(&g.data, w)
}

// byteTokens are the printable stand-ins of the 256 bytes in GPT-2's vocabulary:
// a printable byte is itself, the others follow from U+0100 on.
func byteTokens() []string {
	out := make([]string, 256)
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(r >= '!' && r <= '~' || r >= 0xa1 && r <= 0xac || r >= 0xae) {
			r = next
			next++
		}
		out[b] = string(r)
	}
	return out
}

// tinyModel returns a GGUF file that a real Ollama server loads.
func tinyModel() []byte {
	g := &gguf{rng: rand.New(rand.NewPCG(1, 2))}
	tokens := byteTokens()
	types := make([]int32, 256, 259)
	for i := range types {
		types[i] = 1 // an ordinary token
	}
	th := []string{tokens['t'], tokens['h']}
	tokens = append(tokens, "<|bos|>", "<|eos|>", th[0]+th[1])
	types = append(types, 3, 3, 1) // 3: a control token

	for _, x := range []struct {
		key   string
		value any
	}{{"general.architecture", "llama"}, {"general.name", "tiny"}, {"general.file_type", 0},
		{"llama.context_length", contextLength}, {"llama.embedding_length", width}, {"llama.block_count", layers},
		{"llama.feed_forward_length", hidden}, {"llama.attention.head_count", heads},
		{"llama.attention.head_count_kv", heads}, {"llama.rope.dimension_count", width / heads},
		{"llama.vocab_size", len(tokens)}, {"llama.attention.layer_norm_rms_epsilon", float32(1e-5)},
		{"tokenizer.ggml.model", "gpt2"}, {"tokenizer.ggml.pre", "default"}, {"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.token_type", types}, {"tokenizer.ggml.merges", []string{th[0] + " " + th[1]}},
		{"tokenizer.ggml.bos_token_id", 256}, {"tokenizer.ggml.eos_token_id", 257}} {
		g.value(x.key, x.value)
	}

	g.tensor("token_embd.weight", false, width, len(tokens))
	for i := range layers {
		block := "blk." + string(rune('0'+i)) + "."
		g.tensor(block+"attn_norm.weight", true, width)
		for _, n := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
			g.tensor(block+n+".weight", false, width, width)
		}
		g.tensor(block+"ffn_norm.weight", true, width)
		g.tensor(block+"ffn_gate.weight", false, width, hidden)
		g.tensor(block+"ffn_up.weight", false, width, hidden)
		g.tensor(block+"ffn_down.weight", false, hidden, width)
	}
	g.tensor("output_norm.weight", true, width)
	g.tensor("output.weight", false, width, len(tokens))

	var out bytes.Buffer
	out.WriteString("GGUF")
	put(&out, uint32(3))
	put(&out, g.nTensors)
	put(&out, g.nValues)
	out.Write(g.values.Bytes())
	out.Write(g.tensors.Bytes())
	pad(&out)
	out.Write(g.data.Bytes())
	return out.Bytes()
}

// modelfile says how Ollama makes a prompt of messages and tools for it.
const modelfile = `FROM ./tiny.gguf
TEMPLATE """{{ if .Tools }}tools: {{ .Tools }}
{{ end }}{{ range .Messages }}{{ .Role }}: {{ .Content }}{{ range .ToolCalls }}{"name":"{{ .Function.Name }}","arguments":{{ .Function.Arguments }}}{{ end }}
{{ end }}assistant: """
PARAMETER temperature 0
PARAMETER num_predict 16
`
