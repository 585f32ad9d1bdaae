package view

import (
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/memtox/memtox/results"
)

// packed holds the whole rows of an edition in little memory: some 100 bytes a
// trial with ten decisions. Readers of rows only stream; this is what makes any
// trial open at once.
type packed struct {
	edition *edition
	once    sync.Once
	err     error
	blocks  [][]byte // of blockRows trials each, in the order of the table
	unzip   *zstd.Decoder
}

// blockRows trials are packed together: enough that what they share is packed well,
// few enough to unpack at once.
const blockRows = 256

// fill reads all rows, once.
func (p *packed) fill() {
	p.once.Do(func() {
		zip, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
		if err == nil {
			p.unzip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		}
		if p.err = err; err != nil {
			return
		}
		var block, row []byte
		n := 0
		flush := func() { p.blocks, block = append(p.blocks, zip.EncodeAll(block, nil)), block[:0] }
		p.err = p.edition.each(func(e *results.Entry) {
			row = results.AppendMessage(row[:0], &e.Trial, e.Decisions)
			block = append(binary.AppendUvarint(block, uint64(len(row))), row...)
			if n++; n%blockRows == 0 {
				flush()
			}
		})
		flush()
	})
}

// entry returns the rows of the trial at a place of the table.
func (p *packed) entry(at int) (*results.Trial, []results.Decision, error) {
	p.fill()
	if p.err != nil {
		return nil, nil, p.err
	}
	block, err := p.unzip.DecodeAll(p.blocks[at/blockRows], nil)
	if err != nil {
		return nil, nil, err
	}
	for range at % blockRows {
		n, w := binary.Uvarint(block)
		block = block[w+int(n):]
	}
	n, w := binary.Uvarint(block)
	var e results.Entry
	err = results.ParseMessage(block[w:w+int(n)], &e)
	return &e.Trial, e.Decisions, err
}
