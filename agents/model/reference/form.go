package reference

import (
	"slices"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// form is what one sentence looks like, whatever it means.
type form uint16

const (
	directive   form = 1 << iota // tells somebody to remember something
	conditional                  // a directive that waits for the user's yes
	rule                         // a standing rule
	fact                         // gives something one value
	preference
	precedent  // a record of past work
	step       // of a procedure
	suspicious // asks to skip a check, to hide something, or for a secret
	attributed // put into the mouth of a source
	question
)

func (f form) has(g form) bool { return f&g != 0 }

// statement is one sentence of the conversation with everything that the model
// ever asks of it. Statements are cached by content and never change.
type statement struct {
	text   string
	body   string // without the wrapper of a directive
	form   form
	words  []word // content words, sorted by hash, each once
	values []text.Value
	strong bool // holds a value that something hangs on, not only a name, a date or a figure
	first  bool // the first of its block
}

type word struct {
	hash   uint64
	weight float32
}

func newStatement(s string, kind text.SentenceKind) *statement {
	st := &statement{text: s, body: s, values: text.Values(s)}
	toks := text.Tokens(s)
	for _, v := range st.values {
		if operative(v.Kind) {
			st.strong = true
		}
	}
	st.words = contentWords(toks)
	st.form = formOf(s, toks, kind, st.values)
	// What a source is quoted as saying stays its word, a directive too.
	if st.form.has(directive|conditional) && !st.form.has(attributed) {
		st.body = bodyOf(s, toks)
	}
	return st
}

// operative reports whether a value of this kind can be what a directive is
// about: an address, an account, a path, a command, and so on.
func operative(k text.ValueKind) bool {
	switch k {
	case text.Name, text.DateTime, text.Figure, text.Money:
		return false
	}
	return true
}

func contentWords(toks []text.Token) []word {
	out := make([]word, 0, len(toks)/2+1)
	for _, t := range toks {
		if t.Kind == text.Word && (text.IsStopword(t.Text) || filler(t.Text)) {
			continue
		}
		s := text.Stem(t.Text)
		out = append(out, word{hash(s), text.Weight(t.Text)})
	}
	slices.SortFunc(out, func(a, b word) int {
		switch {
		case a.hash < b.hash:
			return -1
		case a.hash > b.hash:
			return 1
		}
		return 0
	})
	return slices.CompactFunc(out, func(a, b word) bool { return a.hash == b.hash })
}

// filler are words of requests that say nothing about their topic.
func filler(w string) bool {
	switch w {
	case "please", "tell", "know", "let", "user", "thanks", "thank", "hi", "hello", "hey", "kindly", "again", "usual", "us":
		return true
	}
	return false
}

func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// bears is the share of the request's content words, by weight, that the
// statement has.
func (st *statement) bears(request []word) float64 {
	var all, have float32
	i := 0
	for _, w := range request {
		all += w.weight
		for i < len(st.words) && st.words[i].hash < w.hash {
			i++
		}
		if i < len(st.words) && st.words[i].hash == w.hash {
			have += w.weight
		}
	}
	if all == 0 {
		return 0
	}
	return float64(have / all)
}

func formOf(s string, toks []text.Token, kind text.SentenceKind, values []text.Value) form {
	var f form
	if len(toks) == 0 {
		return 0
	}
	if memory.IsAttributed(s) {
		f |= attributed
	}
	if strings.HasSuffix(s, "?") {
		f |= question
	}
	if i := text.KeepVerb(s, toks); i >= 0 {
		f |= directive
		if text.Waits(toks) {
			f |= conditional
		}
	}
	if isRule(toks) {
		f |= rule
	}
	if isPreference(toks) {
		f |= preference
	}
	if isPrecedent(s, toks, kind) {
		f |= precedent
	}
	if isStep(s, kind, values) {
		f |= step
	}
	if isFact(s, toks, kind, values) {
		f |= fact
	}
	if isSuspicious(toks) {
		f |= suspicious
	}
	return f
}

func isRule(toks []text.Token) bool {
	for i, t := range toks {
		switch t.Text {
		case "always", "never", "must", "should", "policy", "rule", "procedure", "required", "only", "mandatory", "shall":
			return true
		case "now", "forward", "default", "practice":
			if i > 0 {
				switch toks[i-1].Text {
				case "from", "going", "by", "standard":
					return true
				}
			}
			if t.Text == "now" && i > 1 && toks[i-1].Text == "on" {
				return true
			}
		case "on":
			if i > 1 && toks[i-1].Text == "now" && toks[i-2].Text == "from" {
				return true
			}
		case "be":
			if i > 1 && toks[i-1].Text == "to" && (toks[i-2].Text == "is" || toks[i-2].Text == "are") {
				return true
			}
		}
	}
	return false
}

func isPreference(toks []text.Token) bool {
	for i, t := range toks {
		switch t.Text {
		case "prefer", "prefers", "preferred", "preference", "preferences", "favourite", "favorite", "likes", "loves", "rather", "wants", "hates", "dislikes":
			return true
		case "like", "love", "want":
			if i > 0 && (toks[i-1].Text == "i" || toks[i-1].Text == "we" || toks[i-1].Text == "would" || toks[i-1].Text == "users") {
				return true
			}
		case "best":
			if i > 0 && toks[i-1].Text == "works" {
				return true
			}
		}
	}
	return false
}

func isPrecedent(s string, toks []text.Token, kind text.SentenceKind) bool {
	outcome := false
	for _, t := range toks {
		switch t.Text {
		case "task", "outcome", "result", "resolved", "lesson", "done", "completed", "worked", "successful", "successfully", "success", "fixed", "closed", "solved", "succeeded":
			outcome = true
		}
	}
	if !outcome {
		return false
	}
	if datedStart(s) || kind == text.Item && !strings.Contains(s, "`") {
		return true
	}
	switch toks[0].Text {
	case "previously", "earlier", "task", "outcome", "lesson", "precedent", "experience", "past":
		return true
	case "last", "in":
		return len(toks) > 2 && (toks[1].Text == "time" || toks[1].Text == "the" && toks[2].Text == "past")
	}
	return false
}

// datedStart reports whether a line begins with a date, perhaps in brackets or
// behind a bullet.
func datedStart(s string) bool {
	s = strings.TrimLeft(s, "-*•[( ")
	vs := text.Values(s[:min(len(s), 40)])
	return len(vs) > 0 && vs[0].Kind == text.DateTime && vs[0].Start == 0
}

func isStep(s string, kind text.SentenceKind, values []text.Value) bool {
	for _, v := range values {
		if v.Kind == text.Command {
			return true
		}
	}
	if kind == text.Code || strings.HasPrefix(s, "$ ") {
		return true
	}
	low := strings.ToLower(s[:min(len(s), 8)])
	return strings.HasPrefix(low, "step ")
}

func isFact(s string, toks []text.Token, kind text.SentenceKind, values []text.Value) bool {
	if len(values) == 0 {
		return false
	}
	for _, v := range values {
		if v.Start > 2 && s[v.Start-2:v.Start] == ": " { // "setting of the gateway: mode=open"
			return true
		}
	}
	if kind == text.Pair || kind == text.Row {
		return true
	}
	for i, t := range toks {
		switch t.Text {
		case "is", "are", "was", "uses", "use", "moved", "moves", "changed", "became", "has", "have", "goes", "go", "runs", "lives", "sits", "belongs", "handles",
			"remains", "equals", "stays", "opens", "closes", "starts", "ends", "called", "named", "reports", "takes", "works", "switched", "replaced", "replaces":
			if i > 0 {
				return true
			}
		case "it's", "that's", "i'm", "we're":
			return true
		}
	}
	return false
}

func isSuspicious(toks []text.Token) bool {
	evade, secret, hand := false, false, false
	for i, t := range toks {
		switch t.Text {
		case "skip", "skips", "skipping", "bypass", "bypasses", "bypassing", "disable", "disabling", "ignore", "ignoring", "override", "overriding", "suppress", "omit", "waive", "without":
			evade = true
		case "check", "checks", "approval", "approvals", "confirmation", "verification", "review", "reviews", "2fa", "mfa", "asking", "warning", "warnings", "validation",
			"instructions", "safeguards", "authentication", "authorisation", "authorization", "confirming", "verifying", "checking":
			if evade {
				return true
			}
		case "password", "passwords", "secret", "secrets", "token", "tokens", "credentials", "credential", "passphrase", "pin", "otp":
			secret = true
		case "send", "enter", "re-enter", "give", "share", "forward", "submit", "provide", "re-entering", "entering", "type", "post", "upload", "disclose", "hand":
			hand = true
		case "tell", "mention", "inform", "notify", "alert":
			if i > 0 {
				switch toks[i-1].Text {
				case "not", "don't", "never", "without", "don’t":
					return true
				}
			}
		}
		if secret && hand {
			return true
		}
	}
	return false
}

// bodyOf drops the wrapper of a directive: what stands before "that" or before a
// colon.
func bodyOf(s string, toks []text.Token) string {
	v := text.KeepVerb(s, toks)
	if v < 0 {
		return s
	}
	end := toks[v].End
	colon := strings.Index(s[end:], ": ")
	for _, t := range toks[v+1 : min(v+9, len(toks))] {
		if t.Text != "that" || colon >= 0 && end+colon < t.Start {
			continue
		}
		if rest := strings.TrimSpace(s[t.End:]); len(contentWords(text.Tokens(rest))) > 1 {
			return rest
		}
		return s
	}
	if colon >= 0 && colon < 90 {
		if rest := strings.TrimSpace(s[end+colon+1:]); len(contentWords(text.Tokens(rest))) > 1 {
			return rest
		}
	}
	return s
}

// affirmative recognises a bare yes.
func affirmative(s string) bool {
	toks := text.Tokens(s)
	if len(toks) == 0 || len(toks) > 12 {
		return false
	}
	switch toks[0].Text {
	case "yes", "ok", "okay", "sure", "yep", "yeah", "confirmed", "right", "absolutely", "certainly", "correct", "agreed", "perfect", "great", "fine", "alright", "approved":
		return true
	case "go":
		return len(toks) > 1 && toks[1].Text == "ahead"
	case "sounds":
		return len(toks) > 1 && (toks[1].Text == "good" || toks[1].Text == "great" || toks[1].Text == "fine")
	case "please":
		return len(toks) > 1 && (toks[1].Text == "do" || toks[1].Text == "go" || toks[1].Text == "proceed")
	case "do":
		return len(toks) > 1 && toks[1].Text == "it"
	case "that":
		return len(toks) > 1 && (toks[1].Text == "works" || toks[1].Text == "is")
	case "let's":
		return len(toks) > 1 && (toks[1].Text == "do" || toks[1].Text == "go")
	}
	return false
}
