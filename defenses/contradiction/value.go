package contradiction

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/memtox/memtox/agents/world"
	"github.com/memtox/memtox/internal/text"
)

// value is one made comparable. Only values of one kind compete.
type value struct {
	kind world.Type // or "day", "phrase"
	form string     // canonical
	unit string     // of a number what it counts, of a choice its group; others with another unit do not compete
	// strong values say themselves what they are for: there is one account that
	// invoices are paid to, whatever the verb.
	strong bool
}

// phrase is the kind of what stands behind "is" in plain words.
const phrase world.Type = "phrase"

var kinds = map[text.ValueKind]world.Type{
	text.URL: "url", text.Host: "url", text.IP: "url", text.Email: "mailbox", text.Account: "account",
	text.Phone: "phone", text.Path: "path", text.Command: "command", text.Handle: "handle",
	text.Money: "money", text.Version: "code", text.ID: "code", text.Name: "name",
}

// valueOf makes a value comparable. next is the word behind it, which may be its
// unit.
func valueOf(v *text.Value, next string) value {
	switch v.Kind {
	case text.Figure:
		return figure(strings.ToLower(v.Text), next)
	case text.DateTime:
		return moment(v.Text)
	}
	form, err := kinds[v.Kind].Canonical(v.Text)
	if err != nil {
		form = strings.ToLower(v.Text)
	}
	strong := strings.Contains(" url mailbox account phone path command handle ", " "+string(kinds[v.Kind])+" ")
	return value{kind: kinds[v.Kind], form: form, strong: strong}
}

// moment reads a time of day or a day. A day without a year has the form of the
// end of one with it.
func moment(s string) value {
	lower := strings.ToLower(s)
	if _, err := time.Parse("Monday", strings.TrimSuffix(s, "s")); err == nil {
		return value{kind: "day", form: lower[:3], unit: "weekday"}
	}
	if strings.Contains(s, ":") || strings.ContainsAny(lower[len(lower)-1:], "m.hn") {
		if t, err := world.Type("time").Canonical(s); err == nil {
			return value{kind: "time", form: t}
		}
	}
	if d, err := world.Type("date").Canonical(s); err == nil {
		return value{kind: "day", form: d}
	}
	if d, err := world.Type("date").Canonical(s + " 2000"); err == nil { // a leap year
		return value{kind: "day", form: strings.TrimPrefix(d, "2000")}
	}
	return value{kind: "day", form: lower, unit: "other"}
}

// figure reads "64 GB", "30s", "25 minutes", "80%".
func figure(s, next string) value {
	end := strings.LastIndexAny(s, "0123456789") + 1
	n, err := world.Type("number").Canonical(s[:end])
	if err != nil {
		return value{kind: "code", form: s}
	}
	f, _ := strconv.ParseFloat(n, 64)
	next = cmp.Or(s[end:], next)
	v := value{kind: "number", unit: text.Stem(next)}
	for base, factor := range lists().Units[next] {
		f, v.unit = f*factor, base
	}
	v.form = strconv.FormatFloat(f, 'g', -1, 64)
	return v
}

// same reports whether two values of one kind are one, in whatever notation, or
// one refines the other.
func (v *value) same(w *value) bool {
	long, short := v.form, w.form
	if len(long) < len(short) {
		long, short = short, long
	}
	switch {
	case long == short:
		return true
	case v.kind == "url": // a host, and a page on it
		return strings.HasPrefix(long, short+"/") && strings.Count(short, "/") == 2
	case v.kind == "day":
		return short[0] == '-' && strings.HasSuffix(long, short)
	case v.kind == phrase || v.kind == "name":
		return refines(long, short)
	}
	return false
}

// refines reports whether every word of short stands in long: "Leeds" and "Leeds,
// near the river".
func refines(long, short string) bool {
	long = " " + strings.NewReplacer(",", "", ".", "").Replace(long) + " "
	for w := range strings.FieldsSeq(short) {
		if !strings.Contains(long, " "+strings.Trim(w, ",.")+" ") {
			return false
		}
	}
	return !strings.Contains(long, " not ") && !strings.Contains(long, " or ")
}
