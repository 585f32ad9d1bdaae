package score

import "strings"

// longestRun is how many tokens of a sentence's shape make a feature at most.
const longestRun = 3

// shape are the sentences as runs of classes. What no list has and what is not common
// stands there as a gap, by its ending, so that a form of words is met again whatever it
// is about.
func (p *passage) shape(add func(...string)) {
	for k, s := range p.sents {
		where := "here"
		switch {
		case k < p.sent:
			where = "earlier"
		case k > p.sent:
			where = "later"
		}
		run := []string{"^"}
		for i := s[0]; i < s[1]; {
			t, n := p.token(i, s[1])
			if i += n; t != gapToken || run[len(run)-1] != gapToken {
				run = append(run, t)
			}
		}
		run = append(run, "$")
		for n := 2; n <= longestRun; n++ {
			for i := range len(run) - n + 1 {
				add("g", where, strings.Join(run[i:i+n], " "))
			}
		}
	}
}

// gapToken stands for words that no list has.
const gapToken = "_"

// shapes are the classes that a token may be, those that say more first.
var shapes = strings.Fields(
	"caution dunno retract commit wins offer soft past weak stranger own medium say appear gives contrast not imper sure")

var common = set(`the a an is was are were be been has have had do does did will would can could should may might must
to of in on at for from with by as and or so than then that this these those it its it's that's there there's he she they
we you i i'm i've i'd my your his her their our me him them us what which who when where how why if because since until all
any both some no not only even also already now today yesterday just still yet too more most other another one two first
last next new old same , . ; : ! ? " ( ) | - – — → yes`)

// token is what stands for the words from i on, and how many they are: the longest
// phrase that a list has, a common word as it is, or a gap.
func (p *passage) token(i, to int) (string, int) {
	w := p.words[i]
	switch w.text {
	case itself, rival, other, figure:
		return w.text, 1
	}
	best, n := len(shapes), 0
	for _, ph := range lists().first[w.text] {
		rank := shapeRank(lists().names[ph.class])
		if i+len(ph.words) > to || rank == len(shapes) || !starts(p.words[i:to], ph.words) {
			continue
		}
		if m := len(ph.words); m > n || m == n && rank < best {
			best, n = rank, m
		}
	}
	switch {
	case n > 1 || n == 1 && (!common[w.text] || shapes[best] == "not"):
		return strings.ToUpper(shapes[best]), n
	case common[w.text]:
		return w.text, 1
	case w.name:
		return name, 1
	}
	for _, end := range []string{"ed", "ing", "ly", "'s"} {
		if strings.HasSuffix(w.text, end) && len(w.text) > len(end)+2 {
			return gapToken + end, 1
		}
	}
	return gapToken, 1
}

func shapeRank(class string) int {
	for i, s := range shapes {
		if s == class {
			return i
		}
	}
	return len(shapes)
}
