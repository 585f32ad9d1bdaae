package datasets

import "embed"

//go:embed sets/memtox-surfaces/*.yaml
var surfaces embed.FS

// Surfaces is the file of memtox-surfaces that is about an installed product, and its name.
// A product without one has no data.
func Surfaces(product string) (file string, data []byte) {
	file = "sets/memtox-surfaces/" + product + ".yaml"
	data, _ = surfaces.ReadFile(file)
	return "datasets/" + file, data
}
