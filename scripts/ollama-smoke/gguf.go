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

// Types of values in a GGUF file (github.com/ggml-org/ggml, docs/gguf.md).
const (
	ggufUint32  = 4
	ggufInt32   = 5
	ggufFloat32 = 6
	ggufString  = 8
	ggufArray   = 9
)

type gguf struct {
	values, tensors, data bytes.Buffer
	nValues, nTensors     uint64
	rng                   *rand.Rand
}

func put(b *bytes.Buffer, v any) { _ = binary.Write(b, binary.LittleEndian, v) } // a Buffer takes everything

func putString(b *bytes.Buffer, s string) {
	put(b, uint64(len(s)))
	b.WriteString(s)
}

func (g *gguf) key(k string, typ uint32) {
	g.nValues++
	putString(&g.values, k)
	put(&g.values, typ)
}

func (g *gguf) text(k, v string)          { g.key(k, ggufString); putString(&g.values, v) }
func (g *gguf) number(k string, v uint32) { g.key(k, ggufUint32); put(&g.values, v) }

func (g *gguf) texts(k string, v []string) {
	g.key(k, ggufArray)
	put(&g.values, uint32(ggufString))
	put(&g.values, uint64(len(v)))
	for _, s := range v {
		putString(&g.values, s)
	}
}

func (g *gguf) numbers(k string, v []int32) {
	g.key(k, ggufArray)
	put(&g.values, uint32(ggufInt32))
	put(&g.values, uint64(len(v)))
	put(&g.values, v)
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
	putString(&g.tensors, name)
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

	g.text("general.architecture", "llama")
	g.text("general.name", "tiny")
	g.number("general.file_type", 0)
	for _, x := range []struct {
		key   string
		value int
	}{{"context_length", contextLength}, {"embedding_length", width}, {"block_count", layers},
		{"feed_forward_length", hidden},
		{"attention.head_count", heads}, {"attention.head_count_kv", heads}, {"rope.dimension_count", width / heads},
		{"vocab_size", len(tokens)}} {
		g.number("llama."+x.key, uint32(x.value))
	}
	g.key("llama.attention.layer_norm_rms_epsilon", ggufFloat32)
	put(&g.values, float32(1e-5))
	g.text("tokenizer.ggml.model", "gpt2")
	g.text("tokenizer.ggml.pre", "default")
	g.texts("tokenizer.ggml.tokens", tokens)
	g.numbers("tokenizer.ggml.token_type", types)
	g.texts("tokenizer.ggml.merges", []string{th[0] + " " + th[1]})
	g.number("tokenizer.ggml.bos_token_id", 256)
	g.number("tokenizer.ggml.eos_token_id", 257)

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
