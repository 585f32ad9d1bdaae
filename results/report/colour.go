package report

import (
	"fmt"
	"math"
)

// viridis is the colour map of that name at equal steps: it rises in lightness
// all the way, so that it can be read in grey and by colour-blind eyes.
// Source: S. van der Walt, N. Smith (2015), matplotlib's default colour map.
var viridis = [...][3]float64{
	{68, 1, 84}, {72, 40, 120}, {62, 73, 137}, {49, 104, 142}, {38, 130, 142},
	{31, 158, 137}, {53, 183, 121}, {110, 206, 88}, {181, 222, 43}, {253, 231, 37},
}

// heat is the colour of a rate from 0 to 1, and that of a text on it.
func heat(rate float64) (fill, text string) {
	at := min(max(rate, 0), 1) * float64(len(viridis)-1)
	i := min(int(at), len(viridis)-2)
	var c [3]float64
	for k := range c {
		c[k] = math.Round(viridis[i][k] + (at-float64(i))*(viridis[i+1][k]-viridis[i][k]))
	}
	text = "#ffffff"
	if l := luminance(c); contrast(l, 0) > contrast(l, 1) {
		text = "#000000"
	}
	return fmt.Sprintf("#%02x%02x%02x", int(c[0]), int(c[1]), int(c[2])), text
}

// luminance is the relative luminance of an sRGB colour; contrast is the ratio
// of two. Source: WCAG 2.2, definitions of relative luminance and contrast ratio.
func luminance(c [3]float64) float64 {
	var l float64
	for k, w := range [3]float64{0.2126, 0.7152, 0.0722} {
		v := c[k] / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		l += w * v
	}
	return l
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }
