package doccheck

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/memtox/memtox/internal/browser"
)

// README.md shows a section of the report of the default run as a browser shows it.
// The file carries the rows of the section's table, and these are held to today's
// report: pixels differ between machines, figures do not. -update takes the picture.
func checkPicture(t *testing.T, name, report string) {
	page, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), `<section id="tradeoff"`)
	_, section, found := strings.Cut(section, "<tbody>")
	section, _, _ = strings.Cut(section, "</tbody>")
	if !found || strings.Count(section, "<tr>") < 10 {
		t.Fatalf("the report has no table of harm against tasks done:\n%s", section)
	}
	says := chunk("iTXt", "Description\x00\x00\x00\x00\x00"+regexp.MustCompile(`<[^>]*>`).ReplaceAllString(section, " "))
	if *update {
		var png []byte
		p := browser.Open(t)
		p.Size(900, 800, "light")
		p.Go("file://" + filepath.ToSlash(report))
		p.Eval("document.querySelector('#tradeoff figure').style = 'margin: 0; padding: 1rem'; "+
			"document.querySelector('#tradeoff details').hidden = true", nil)
		p.Run(chromedp.ScreenshotScale("#tradeoff figure", 2, &png, chromedp.ByQuery))
		const head = 8 + 12 + 13 // the signature and the first chunk, which must stay first
		png = append(png[:head:head], append(says, png[head:]...)...)
		if err := os.WriteFile(name, png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	png, err := os.ReadFile(name)
	switch {
	case err != nil:
		t.Error(err)
	case len(png) > 200_000:
		t.Errorf("%s has %d bytes, more than a page should load", name, len(png))
	case !bytes.Contains(png, says):
		t.Errorf("%s shows other figures than the report has today; take it anew with\n\tMEMTOX_LONG=1 go test "+
			"./scripts/doccheck -run Tables -update", name)
	}
}

// chunk is a part of a PNG file.
func chunk(kind, text string) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	out = append(out, kind+text...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}
