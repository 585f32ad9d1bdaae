package guard

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/internal/text"
)

// The families of sensitive data.
const (
	SecretFamily   = "secret"        // what opens a door: keys, tokens, passwords
	PersonalFamily = "personal_data" // what belongs to a person: cards, accounts, numbers
)

// maxSensitive bounds the findings of one content. Beyond it the last finding is
// about all of it.
const maxSensitive = 64

// sensitiveData finds secrets and personal data, wherever they stand and however
// they are wrapped, and in the same pass decoys. Notes never hold what was found.
func sensitiveData(g *gate, s *subject) {
	if s.Op == memory.Remove {
		return
	}
	defer g.bracketed(s)
	n := len(s.findings)
	layers := s.layers()
	for i := range layers {
		l := &layers[i]
		g.secrets.find(l, func(k *sensitive, start, end int) bool {
			if len(s.findings)-n >= maxSensitive {
				s.add(sensitiveFinding(k, 0, 0)) // too many to name: all of it
				return false
			}
			start, end = l.place(start, end)
			for _, f := range s.findings[n:] {
				if f.Start <= start && end <= f.End {
					return true
				}
			}
			s.add(sensitiveFinding(k, start, end))
			return true
		})
	}
}

func sensitiveFinding(k *sensitive, start, end int) Finding {
	if k == &decoy {
		return decoyFinding(start, end)
	}
	f := found(SensitiveDataCheck, k.severity, k.id, "the content holds "+k.what)
	f.Family, f.Start, f.End = k.family, start, end
	return f
}

// sensitive is one kind of sensitive data.
type sensitive struct {
	id, what string
	family   string
	severity Severity
}

// token is a secret with a prefix of its own: the prefix, and how many characters
// of which kind follow. Lengths are those of the issuers' documentation; where an
// issuer changed them, the least.
type token struct {
	sensitive
	prefixes []string // small letters
	least    int
	chars    *[256]bool
	digits   bool // at least one must be there, for prefixes that are words too
}

func secret(id, what string) sensitive { return sensitive{id, what, SecretFamily, High} }

var (
	alnum = charset("")
	url64 = charset("-_")
	wide  = charset("-_.=+/~%")
)

func charset(more string) *[256]bool {
	var t [256]bool
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
			strings.IndexByte(more, byte(c)) >= 0 && c < 0x80
	}
	return &t
}

var tokens = []token{
	{secret("aws_access_key_id", "an AWS access key id"), []string{"akia", "asia", "abia", "acca"}, 16, alnum, false},
	{secret("github_token", "a GitHub token"), []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}, 30, alnum, false},
	{secret("github_token", "a GitHub token"), []string{"github_pat_"}, 40, url64, false},
	{secret("gitlab_token", "a GitLab token"), []string{"glpat-", "gldt-", "glrt-"}, 20, url64, false},
	{secret("stripe_key", "a Stripe key"), []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"}, 16, alnum,
		false},
	{secret("api_key", "an API key"), []string{"sk-"}, 20, url64, false},
	{secret("slack_token", "a Slack token"), []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xapp-"}, 20,
		url64, false},
	{secret("google_api_key", "a Google API key"), []string{"aiza"}, 30, url64, false},
	{secret("google_oauth_token", "a Google access token"), []string{"ya29."}, 20, url64, false},
	{secret("npm_token", "an npm token"), []string{"npm_"}, 36, alnum, false},
	{secret("pypi_token", "a PyPI token"), []string{"pypi-ageichlwas5vcmc"}, 40, url64, false},
	{secret("huggingface_token", "a Hugging Face token"), []string{"hf_"}, 30, alnum, false},
	{secret("sendgrid_key", "a SendGrid key"), []string{"sg."}, 60, charset("-_."), true},
	{secret("digitalocean_token", "a DigitalOcean token"), []string{"dop_v1_", "doo_v1_"}, 60, alnum, false},
	{secret("docker_token", "a Docker token"), []string{"dckr_pat_"}, 20, url64, false},
	{secret("shopify_token", "a Shopify token"), []string{"shpat_", "shpss_", "shpca_"}, 32, alnum, false},
	{secret("atlassian_token", "an Atlassian token"), []string{"atatt3"}, 40, charset("-_="), false},
	{secret("age_secret_key", "an age secret key"), []string{"age-secret-key-1"}, 50, alnum, false},
	{secret("linear_key", "a Linear key"), []string{"lin_api_"}, 30, alnum, false},
}

var (
	privateKey = secret("private_key", "a private key")
	jwt        = secret("json_web_token", "a JSON web token")
	bearer     = secret("authorization", "an authorization header")
	urlLogin   = secret("url_credentials", "a user and a password in a URL")
	password   = secret("password", "a password or key beside its name")
	card       = sensitive{"payment_card", "the number of a payment card", PersonalFamily, Medium}
	ssn        = sensitive{"social_security_number", "a social security number", PersonalFamily, Medium}
	iban       = sensitive{"iban", "an international bank account number", PersonalFamily, Low}
)

// What the automaton looks for beside the prefixes of tokens.
const (
	seesKeyBlock = iota
	seesJWT
	seesBearer
	seesURL
	seesName
	seesSSN
	seesDecoy
)

// finder finds sensitive data and decoys. It never changes.
type finder struct {
	words *text.Phrases
	token []int // phrase → index in tokens, or len(tokens) and more for the others
}

// newFinder returns a finder that looks for decoys in the same pass.
func newFinder(decoys []string) *finder {
	f := new(finder)
	var phrases []text.Phrase
	add := func(what int, list ...string) {
		for _, s := range list {
			phrases = append(phrases, text.Phrase{Text: s})
			f.token = append(f.token, what)
		}
	}
	for i, t := range tokens {
		add(i, t.prefixes...)
	}
	add(len(tokens)+seesKeyBlock, "-----begin")
	add(len(tokens)+seesJWT, "eyj")
	add(len(tokens)+seesBearer, "bearer ", "authorization: basic ", "authorization: token ")
	add(len(tokens)+seesURL, "://")
	add(len(tokens)+seesName, "password", "passwd", "passphrase", "passcode", "pwd", "secret", "token", "api key",
		"api_key", "api-key", "apikey", "access key", "access_key", "accesskey", "accountkey", "private key", "private_key",
		"credential")
	add(len(tokens)+seesSSN, "ssn", "social security")
	add(len(tokens)+seesDecoy, decoys...)
	f.words = text.CompilePhrases(phrases)
	return f
}

// find calls yield with each place of sensitive data in a layer until yield
// returns false.
func (f *finder) find(l *layer, yield func(k *sensitive, start, end int) bool) {
	s, mapped := l.Quick()
	on, until := true, 0
	give := func(k *sensitive, start, end int) {
		if start < until || !on {
			return // within what was found before
		}
		until = end
		if !mapped {
			start, end = l.Back(start, end)
		}
		on = yield(k, start, end)
	}
	f.words.Find(s, func(id, start, end int) bool {
		what := f.token[id]
		if what < len(tokens) {
			t := &tokens[what]
			if n := run(s[end:], t.chars); n >= t.least && before(s, start) &&
				(!t.digits || strings.ContainsAny(s[end:end+n], "0123456789")) {
				give(&t.sensitive, start, end+n)
			}
			return on
		}
		switch what - len(tokens) {
		case seesKeyBlock:
			if to, ok := keyBlock(s, start); ok {
				give(&privateKey, start, to)
			}
		case seesJWT:
			if n := webToken(s[start:], mapped); n > 0 && before(s, start) {
				give(&jwt, start, start+n)
			}
		case seesBearer:
			if n := run(s[end:], wide); n >= 16 && varied(s[end:end+n]) {
				give(&bearer, end, end+n)
			}
		case seesURL:
			if from, to, ok := login(s, end); ok {
				give(&urlLogin, from, to)
			}
		case seesName:
			if from, to, ok := named(s, end); ok {
				give(&password, from, to)
			}
		case seesDecoy:
			until = 0 // whatever else it is
			give(&decoy, start, end)
		case seesSSN:
			if from, to, ok := socialNumber(s, end); ok {
				give(&ssn, from, to)
			}
		}
		return on
	})
	if on && (l.digits >= 9 || !mapped) { // folding brings digits of other scripts
		numbers(s, func(k *sensitive, start, end int) bool {
			until = 0
			give(k, start, end)
			return on
		})
	}
}

// run is the length of the run of characters of a set.
func run(s string, set *[256]bool) int {
	n := 0
	for n < len(s) && set[s[n]] {
		n++
	}
	return n
}

// before reports whether a token can begin at s[i]: no letter or digit stands
// before it.
func before(s string, i int) bool { return i == 0 || !alnum[s[i-1]] }

// varied reports whether a value looks made rather than written: letters beside
// digits, or beside signs within.
func varied(s string) bool {
	letters, digits, signs := 0, 0, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			letters++
		default:
			signs++
		}
	}
	return letters > 0 && digits > 0 || digits+letters > 0 && signs > 1 && strings.ContainsAny(s, "!@#$%^&*")
}

// keyBlock is a private key in PEM form, to the end of the text where its end is
// missing.
func keyBlock(s string, start int) (end int, ok bool) {
	head := s[start:min(len(s), start+64)]
	head = strings.ToLower(head)
	if i := strings.Index(head, "private"); i < 0 || !strings.HasPrefix(strings.TrimSpace(head[i+len("private"):]),
		"key") {
		return 0, false
	}
	const tail = "-----end"
	low := strings.ToLower(s[start:min(len(s), start+16<<10)])
	if i := strings.Index(low, tail); i >= 0 {
		end = start + i + len(tail)
		if n := strings.Index(low[i+len(tail):], "-----"); n >= 0 && n < 64 {
			end += n + 5
		}
		return end, true
	}
	return min(len(s), start+16<<10), true
}

// webToken is the length of three parts of base64 of which the first says how it
// is signed; 0 if it is none. Where the text was folded its first part can no
// longer be read.
func webToken(s string, exact bool) int {
	head := run(s, url64)
	if head < 12 || head > 4096 || head >= len(s) || s[head] != '.' {
		return 0
	}
	if exact {
		raw, err := base64.RawURLEncoding.DecodeString(s[:head])
		var fields map[string]any
		if err != nil || json.Unmarshal(raw, &fields) != nil || fields["alg"] == nil && fields["enc"] == nil {
			return 0
		}
	}
	n := head + 1
	body := run(s[n:], url64)
	if body < 4 {
		return 0
	}
	if n += body; n < len(s) && s[n] == '.' {
		n += 1 + run(s[n+1:], url64)
	}
	return n
}

// login finds user:password@ at the beginning of a URL's host.
func login(s string, from int) (start, end int, ok bool) {
	colon, at := -1, -1
	for i := from; i < len(s) && i < from+256; i++ {
		c := s[i]
		if c <= ' ' || c == '/' || c == '?' || c == '#' || c == '"' || c == '<' {
			break
		}
		if c == ':' && colon < 0 {
			colon = i
		}
		if c == '@' {
			at = i // a password may hold one
		}
	}
	if colon < 0 || at < colon+2 || s[colon+1] == '$' || s[colon+1] == '{' || s[colon+1] == '*' || s[colon+1] == '[' {
		return 0, 0, false
	}
	return from, at, true
}

// named finds a value that its name calls a secret: "password: x", API_KEY=x.
func named(s string, from int) (start, end int, ok bool) {
	i := from
	for i < len(s) && i < from+12 && (alnum[s[i]] || s[i] == '_' || s[i] == '-') { // secrets, password_1
		i++
	}
	for i < len(s) && i < from+16 && (s[i] == '"' || s[i] == '\'' || s[i] == '`' || s[i] == ' ') {
		i++
	}
	switch {
	case i < len(s) && (s[i] == ':' || s[i] == '='):
		i++
	case strings.HasPrefix(strings.ToLower(s[i:min(len(s), i+3)]), "is "):
		i += 3
	default:
		return 0, 0, false
	}
	for i < len(s) && (s[i] == ' ' || s[i] == '"' || s[i] == '\'' || s[i] == '`' || s[i] == '=' || s[i] == '>') {
		i++
	}
	start = i
	for i < len(s) && i < start+256 && s[i] > ' ' && s[i] != '"' && s[i] != '\'' && s[i] != '`' && s[i] != ',' &&
		s[i] != ';' && s[i] != '<' {
		i++
	}
	end = i
	for end > start && strings.IndexByte(".)]}:?", s[end-1]) >= 0 {
		end--
	}
	v := s[start:end]
	if len(v) < 8 || !varied(v) || strings.HasPrefix(v, "[") || strings.HasPrefix(v, "$") || strings.HasPrefix(v, "{") ||
		strings.HasPrefix(v, "*") || strings.Contains(v, "://") || strings.HasPrefix(v, "/") {
		return 0, 0, false
	}
	return start, end, true
}

// socialNumber finds a number of three, two and four digits soon behind a mention
// of social security. There the rules of who was given which are not asked.
func socialNumber(s string, from int) (start, end int, ok bool) {
	for i := from; i < len(s) && i < from+24; i++ {
		if s[i] >= '0' && s[i] <= '9' {
			if n := groups(s[i:]); n > 0 {
				return i, i + n, true
			}
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// groups is the length of 123-45-6789 or 123456789 at the beginning of s.
func groups(s string) int {
	i, sep := 0, byte(0)
	for part, n := range [...]int{3, 2, 4} {
		if part > 0 && i < len(s) && (s[i] == '-' || s[i] == ' ') && (part == 1 || s[i] == sep) {
			sep = s[i]
			i++
		} else if part > 0 && sep != 0 {
			return 0
		}
		for range n {
			if i >= len(s) || s[i] < '0' || s[i] > '9' {
				return 0
			}
			i++
		}
	}
	if i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '-') {
		return 0
	}
	return i
}
