package main

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// The file's own header says how many tensors and values follow, where each
// tensor is, and that all of them fit.
func TestTinyModelIsAWholeFile(t *testing.T) {
	b := tinyModel()
	if !bytes.Equal(b, tinyModel()) {
		t.Error("two calls give two models")
	}
	if len(b) < 400_000 || len(b) > 600_000 || string(b[:4]) != "GGUF" {
		t.Fatalf("%d bytes, beginning %q", len(b), b[:4])
	}
	if v, n, k := binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:]),
		binary.LittleEndian.Uint64(b[16:]); v != 3 || n != 3+9*layers || k != 19 {
		t.Errorf("version %d, %d tensors, %d values", v, n, k)
	}
}
