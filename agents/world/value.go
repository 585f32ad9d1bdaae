package world

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"
	"golang.org/x/text/unicode/norm"
)

// Type is what kind of value a column or an argument holds. Two values are the
// same where their canonical forms are: whole, never by a part of one.
type Type string

// FreeText is the type of columns that are not compared: what a person writes.
const FreeText Type = "text"

// Title is the type of what a person calls something anew, such as a reminder: whose
// words nobody gave him.
const Title Type = "title"

// Types lists the types by name.
func Types() []Type {
	var out []Type
	for t := range canonical {
		out = append(out, t)
	}
	slices.Sort(out)
	return out
}

// canonical brings a value of each type to the one form in which it is compared.
// White space around it is gone already, and it is not empty.
var canonical = map[Type]func(string) (string, error){
	FreeText:   func(s string) (string, error) { return s, nil },
	"name":     func(s string) (string, error) { return fold(strings.Trim(s, `"'“”‘’`)), nil },
	Title:      func(s string) (string, error) { return fold(strings.Trim(s, `"'“”‘’`)), nil },
	"choice":   func(s string) (string, error) { return joined.Replace(fold(strings.Trim(s, `"'“”‘’`))), nil },
	"switch":   asSwitch,
	"account":  asAccount,
	"mailbox":  asMailbox,
	"phone":    asPhone,
	"url":      asURL,
	"host":     asHost,
	"path":     asPath,
	"channel":  func(s string) (string, error) { return prefixed(s, "#", " \t") },
	"handle":   func(s string) (string, error) { return prefixed(s, "@", " \t") },
	"package":  func(s string) (string, error) { return asWord(strings.ReplaceAll(strings.ToLower(s), "_", "-")) },
	"version":  asVersion,
	"command":  asCommand,
	"code":     func(s string) (string, error) { return asCompact(s, 2, 64) },
	"money":    asMoney,
	"number":   func(s string) (string, error) { n, err := asNumber(s); return n, err },
	"percent":  asPercent,
	"date":     asDate,
	"time":     asTime,
	"datetime": asDateTime,
	"duration": asDuration,
}

// known reports whether there is such a type.
func (t Type) known() bool {
	if of, ok := t.Element(); ok {
		t = of
	}
	return canonical[t] != nil
}

// Canonical returns the form of a value in which values of a type are compared. A
// type in brackets, "[mailbox]", is a list of it: its values as a set. An empty
// value has an empty form. The error says why the value is none of its type.
func (t Type) Canonical(value string) (string, error) {
	value = strings.TrimSpace(norm.NFC.String(value))
	if value == "" {
		return "", nil
	}
	if of, ok := t.Element(); ok {
		items, err := of.items(value)
		return strings.Join(items, "\n"), err
	}
	form, ok := canonical[t]
	if !ok {
		return "", fmt.Errorf("there is no type %q: one of %q", t, Types())
	}
	c, err := form(value)
	if err != nil {
		return "", fmt.Errorf("%q is no %s: %w", value, t, err)
	}
	return c, nil
}

// Element is what a list consists of; ok is false for a type that is no list.
func (t Type) Element() (of Type, ok bool) {
	s, open := strings.CutPrefix(string(t), "[")
	s, shut := strings.CutSuffix(s, "]")
	return Type(s), open && shut
}

// Equal reports whether two values of a type are the same. What is no value of
// the type is the same as its own spelling alone.
func (t Type) Equal(a, b string) bool { return t.form(a) == t.form(b) }

// Contains reports whether a list holds all items of another, or for a type that
// is no list, whether the two are the same.
func (t Type) Contains(list, items string) bool {
	of, ok := t.Element()
	if !ok {
		return t.Equal(list, items)
	}
	have := of.forms(list)
	return !slices.ContainsFunc(of.forms(items), func(s string) bool { return !slices.Contains(have, s) })
}

// form is the canonical form, or what stands there where it has none.
func (t Type) form(value string) string {
	if of, ok := t.Element(); ok {
		return strings.Join(of.forms(value), "\n")
	}
	c, err := t.Canonical(value)
	if err != nil {
		return "\x00" + strings.TrimSpace(value)
	}
	return c
}

func (t Type) forms(list string) []string {
	var out []string
	for _, s := range split(list) {
		out = append(out, t.form(s))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Items takes a list apart at semicolons, line ends, commas and "and", as it was
// written.
func Items(list string) []string { return split(list) }

func (t Type) items(list string) ([]string, error) {
	var out []string
	for _, s := range split(list) {
		c, err := t.Canonical(s)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

var between = regexp.MustCompile(`\s*(?:[;\n]|,\s|,$|,([^\s]*@)|\s(?:and|&)\s)\s*`)

// split takes a list apart at semicolons, line ends, commas and "and".
func split(list string) []string {
	list = between.ReplaceAllString(strings.Trim(strings.TrimSpace(list), "[]"), "\n$1")
	return strings.FieldsFunc(list, func(r rune) bool { return r == '\n' })
}

// fold leaves out what spelling alone decides: case and runs of white space.
func fold(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }

var joined = strings.NewReplacer("-", " ", "_", " ")

func prefixed(s, mark, not string) (string, error) {
	s = strings.TrimPrefix(strings.ToLower(s), mark)
	if s == "" || strings.ContainsAny(s, not) {
		return "", fmt.Errorf("it is one word, with or without a %s", mark)
	}
	return s, nil
}

func asWord(s string) (string, error) {
	if strings.ContainsAny(s, " \t\n") {
		return "", errors.New("it is one word")
	}
	return s, nil
}

func asSwitch(s string) (string, error) {
	switch fold(s) {
	case "on", "true", "yes", "enabled", "enable", "1":
		return "on", nil
	case "off", "false", "no", "disabled", "disable", "0":
		return "off", nil
	}
	return "", errors.New("it is on or off")
}

// asCompact leaves out spaces, hyphens and case, by which people group a long
// code.
func asCompact(s string, least, most int) (string, error) {
	var b strings.Builder
	for _, r := range strings.ToUpper(s) {
		switch {
		case r == ' ' || r == '-' || r == '\u00a0' || r == '\u2011':
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			return "", fmt.Errorf("%q stands in it", r)
		}
	}
	if n := b.Len(); n < least || n > most {
		return "", fmt.Errorf("it has %d letters and digits", n)
	}
	return b.String(), nil
}

func asAccount(s string) (string, error) {
	if rest, ok := strings.CutPrefix(strings.ToUpper(s), "IBAN"); ok {
		s = strings.TrimLeft(rest, ": ")
	}
	return asCompact(strings.ReplaceAll(s, ".", ""), 6, 34)
}

func asMailbox(s string) (string, error) {
	if name, rest, ok := strings.Cut(s, "<"); ok {
		if strings.ContainsAny(name, "@,;\r\n") {
			return "", errors.New("it is one name and one address") // a mail would go to both
		}
		s = strings.TrimSuffix(strings.TrimSpace(rest), ">")
	}
	s = strings.ToLower(strings.TrimPrefix(s, "mailto:"))
	user, host, ok := strings.Cut(s, "@")
	if !ok || user == "" || host == "" || strings.ContainsAny(s, " \t<>,;") || strings.Contains(host, "@") {
		return "", errors.New("it is name@host")
	}
	return user + "@" + strings.TrimSuffix(host, "."), nil
}

func asPhone(s string) (string, error) {
	s = strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(s), "tel:"), "(0)", "")
	var b strings.Builder
	for i, r := range strings.TrimSpace(s) {
		switch {
		case r >= '0' && r <= '9' || r == '+' && i == 0:
			b.WriteRune(r)
		case !strings.ContainsRune(" -./()\u00a0\u2011", r):
			return "", fmt.Errorf("%q stands in it", r)
		}
	}
	n := b.String()
	if rest, ok := strings.CutPrefix(n, "00"); ok {
		n = "+" + rest
	}
	if len(n) < 4 || len(n) > 18 {
		return "", fmt.Errorf("it has %d digits", len(n))
	}
	return n, nil
}

func asHost(s string) (string, error) {
	h := strings.TrimSuffix(strings.ToLower(s), ".")
	if strings.ContainsAny(h, " /@\t") || !strings.ContainsAny(h, ".:") && h != "localhost" {
		return "", errors.New("it is a name with a dot")
	}
	return h, nil
}

func asURL(s string) (string, error) {
	s = strings.Trim(s, "<>")
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	if err != nil {
		return "", err
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	for scheme, port := range map[string]string{"https": "443", "http": "80", "ftp": "21"} {
		if u.Scheme == scheme {
			u.Host = strings.TrimSuffix(u.Host, ":"+port)
		}
	}
	if _, err := asHost(u.Host); err != nil {
		return "", err
	}
	u.Host, u.Fragment, u.RawFragment = strings.TrimSuffix(u.Host, "."), "", ""
	u.RawPath, u.ForceQuery = "", false
	if u.Path = strings.TrimSuffix(u.Path, "/"); u.Path != "" {
		u.Path = path.Clean(u.Path)
	}
	return u.String(), nil
}

func asPath(s string) (string, error) {
	s = strings.Trim(strings.ReplaceAll(s, `\`, "/"), "\"'`")
	if strings.ContainsAny(s, "\n\x00") {
		return "", errors.New("it is one line")
	}
	return path.Clean(s), nil
}

func asVersion(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	s = strings.TrimSpace(strings.TrimPrefix(s, "version"))
	if len(s) > 1 && s[0] == 'v' && s[1] >= '0' && s[1] <= '9' {
		s = s[1:]
	}
	return asWord(s)
}

func asCommand(s string) (string, error) {
	s = strings.TrimSpace(strings.Trim(s, "`"))
	s = strings.TrimPrefix(s, "$ ")
	words, err := shellquote.Split(s)
	if err != nil || strings.ContainsAny(s, "|&;<>$(`") { // what a shell would do with it is part of it
		return strings.Join(strings.Fields(s), " "), nil
	}
	return shellquote.Join(words...), nil
}

var figure = regexp.MustCompile(`^[-+−]?(?:[0-9]{1,3}(?:[ ,'\x{00a0}\x{202f}][0-9]{3})+|[0-9]+)?(?:\.[0-9]+)?$`)

// asNumber reads a number as English writes it: a comma, a space or an apostrophe
// between thousands, a full stop before decimals.
func asNumber(s string) (string, error) {
	if !figure.MatchString(s) || !strings.ContainsAny(s, "0123456789") {
		return "", errors.New("it is a number such as 1,250.50")
	}
	sign := ""
	if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "−") {
		sign = "-"
	}
	s = strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' {
			return r
		}
		return -1
	}, s)
	whole, part, _ := strings.Cut(s, ".")
	whole, part = strings.TrimLeft(whole, "0"), strings.TrimRight(part, "0")
	if whole == "" {
		whole = "0"
	}
	if part != "" {
		part = "." + part
	}
	if whole+part == "0" {
		sign = ""
	}
	return sign + whole + part, nil
}

func asPercent(s string) (string, error) {
	s = strings.ToLower(s)
	for _, unit := range []string{"%", "percent", "per cent"} {
		if rest, ok := strings.CutSuffix(s, unit); ok {
			n, err := asNumber(strings.TrimSpace(rest))
			return n + "%", err
		}
	}
	return "", errors.New("it is a number with a percent sign")
}

var currencies = map[string]string{
	"€": "EUR", "EURO": "EUR", "EUROS": "EUR", "$": "USD", "US$": "USD", "DOLLAR": "USD", "DOLLARS": "USD",
	"£": "GBP", "POUND": "GBP", "POUNDS": "GBP", "¥": "JPY", "YEN": "JPY", "FRANCS": "CHF", "SFR.": "CHF", "FR.": "CHF",
}

var money = regexp.MustCompile(`^(US\$|[$€£¥]|[\p{L}.]+)?\s*([-+−]?[0-9][0-9.,' \x{00a0}\x{202f}]*?)(?:\.-|,-)?\s*([$€£¥]|[\p{L}.]+)?$`)

func asMoney(s string) (string, error) {
	m := money.FindStringSubmatch(strings.ToUpper(s))
	if m == nil || (m[1] == "") == (m[3] == "") {
		return "", errors.New("it is a number and one currency")
	}
	unit := m[1] + m[3]
	if c, ok := currencies[unit]; ok {
		unit = c
	}
	if len(unit) != 3 {
		return "", fmt.Errorf("%q is no currency", unit)
	}
	digits := strings.TrimSpace(m[2])
	// With decimals behind a comma the other marks stand between thousands.
	if i := strings.LastIndexByte(digits, ','); i >= 0 && len(digits)-i-1 <= 2 {
		digits = strings.NewReplacer(".", ",").Replace(digits[:i]) + "." + digits[i+1:]
	} else if i := strings.LastIndexByte(digits, '.'); i >= 0 && len(digits)-i-1 == 3 {
		digits = strings.ReplaceAll(digits, ".", ",")
	}
	n, err := asNumber(digits)
	return unit + " " + n, err
}

var (
	ordinal  = regexp.MustCompile(`(?i)\b([0-9]{1,2})(?:st|nd|rd|th)\b`)
	weekday  = regexp.MustCompile(`(?i)^(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+`)
	dayForms = []string{"2006-01-02", "2006/01/02", "20060102", "2.1.2006", "2/1/2006", "2 January 2006", "2 Jan 2006",
		"January 2 2006", "Jan 2 2006", "2. January 2006", "2-Jan-2006"}
	dayMarks    = strings.NewReplacer(",", "", " of ", " ", "Sept ", "Sep ", "Jan. ", "Jan ", "Feb. ", "Feb ")
	clockMarks  = strings.NewReplacer("a.m.", "am", "p.m.", "pm", " o'clock", ":00")
	momentMarks = strings.NewReplacer(" at ", " ", ", ", " ", " on ", " ")
	clockForms  = []string{"15:04", "15:04:05", "15.04", "15h04", "3:04 pm", "3:04pm", "3 pm", "3pm", "3.04 pm", "15h"}
)

// asDate reads a day; one in figures alone has the day first, unless the year is.
func asDate(s string) (string, error) {
	s = ordinal.ReplaceAllString(weekday.ReplaceAllString(s, ""), "$1")
	s = dayMarks.Replace(s)
	s = strings.Join(strings.Fields(s), " ")
	for _, form := range dayForms {
		if d, err := time.Parse(form, s); err == nil {
			return d.Format(time.DateOnly), nil
		}
	}
	return "", errors.New("it is a day with its year, such as 2026-06-14 or 14 June 2026")
}

func asTime(s string) (string, error) {
	s = clockMarks.Replace(strings.ToLower(s))
	switch s = strings.TrimSuffix(strings.Join(strings.Fields(s), " "), " h"); s {
	case "noon", "12 noon", "midday":
		return "12:00", nil
	case "midnight":
		return "00:00", nil
	}
	for _, form := range clockForms {
		if t, err := time.Parse(form, s); err == nil {
			return t.Format("15:04"), nil
		}
	}
	return "", errors.New("it is a time of day such as 14:30 or 2:30 pm")
}

func asDateTime(s string) (string, error) {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.Parse(form, s); err == nil {
			return t.UTC().Format("2006-01-02 15:04"), nil
		}
	}
	s = momentMarks.Replace(s)
	words := strings.Fields(s)
	for i := 1; i < len(words); i++ { // the day first, or the time
		front, back := strings.Join(words[:i], " "), strings.Join(words[i:], " ")
		for _, order := range [][2]string{{front, back}, {back, front}} {
			d, err := asDate(order[0])
			t, err2 := asTime(order[1])
			if err == nil && err2 == nil {
				return d + " " + t, nil
			}
		}
	}
	return "", errors.New("it is a day with its year and a time of day")
}

var durationPart = regexp.MustCompile(`^([0-9]+(?:\.[0-9]+)?)\s*(weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b[, ]*(?:and )?`)

func asDuration(s string) (string, error) {
	s = strings.ReplaceAll(strings.ToLower(s), "-", " ")
	unit := map[byte]float64{'w': 7 * 24 * 3600, 'd': 24 * 3600, 'h': 3600, 'm': 60, 's': 1}
	total := 0.
	for rest := s; rest != ""; {
		m := durationPart.FindStringSubmatch(rest)
		if m == nil {
			return "", errors.New("it is a number with a unit, such as 90 minutes")
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return "", err
		}
		total += n * unit[m[2][0]]
		rest = rest[len(m[0]):]
	}
	return strconv.FormatFloat(total, 'f', -1, 64) + "s", nil
}
