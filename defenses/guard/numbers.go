package guard

import (
	"regexp"
	"strings"
)

var (
	cardForm   = regexp.MustCompile(`^\d(?:[ -]?\d){12,18}`)
	socialForm = regexp.MustCompile(`^(\d{3}-\d\d-\d{4})(?:[^\d-]|$)`)
	// issuers are the prefixes and lengths of the large card schemes (ISO/IEC 7812).
	issuers = regexp.MustCompile(`^(?:4\d{12}(?:\d{3}){0,2}|` +
		`(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|` +
		`3[47]\d{13}|3[068]\d{12}|(?:6011|(?:6[245]|35|81)\d\d)\d{12,15})$`)
)

// numbers finds what a checksum tells: payment cards (Luhn, and a prefix that an
// issuer has), bank accounts (IBAN, modulo 97 and the length of the country), and
// social security numbers that were given out.
func numbers(s string, yield func(k *sensitive, start, end int) bool) {
	for i := 0; i < len(s); i++ {
		if !alnum(s[i]) || !begins(s, i) {
			continue
		}
		n, k := 0, ""
		switch rest := s[i:]; {
		case letter(s[i]):
			n, k = accountNumber(rest), "iban"
		case i > 0 && s[i-1] == '_':
		default:
			if n, k = cardNumber(rest), "payment_card"; n > 0 {
				break
			}
			if m := socialForm.FindStringSubmatch(rest); m != nil && given(m[1]) && (i == 0 || s[i-1] != '-') {
				n, k = len(m[1]), "social_security_number"
			}
		}
		if n > 0 && !yield(kind(k), i, i+n) {
			return
		}
		i += max(0, n-1)
	}
}

// cardNumber is the length of a payment card's number at the beginning of s, with
// single spaces or hyphens between its groups. What follows may be another number, so
// the longest that fits is the card's.
func cardNumber(s string) int {
	for m := cardForm.FindString(s); m != ""; m = m[:max(0, strings.LastIndexAny(m, " -"))] {
		plain := strings.NewReplacer(" ", "", "-", "").Replace(m)
		if whole := len(m) == len(s) || !alnum(s[len(m)]); whole && issuers.MatchString(plain) && luhn(plain) {
			return len(m)
		}
	}
	return 0
}

// luhn is the check digit of ISO/IEC 7812-1.
func luhn(d string) bool {
	sum, zero := 0, true
	for i := range d {
		v := int(d[len(d)-1-i] - '0')
		zero = zero && v == 0
		if i%2 == 1 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0 && !zero
}

// given reports whether a social security number can have been given out: no
// area 000, 666 or 900 and above, no group 00, no serial 0000, and neither of the
// two that stand in advertisements.
func given(s string) bool {
	area := s[:3]
	return area != "000" && area != "666" && area[0] != '9' && s[4:6] != "00" && s[7:] != "0000" &&
		s != "078-05-1120" && s != "219-09-9999"
}

// accountNumber is the length of an IBAN at the beginning of s, with single
// spaces between its groups.
func accountNumber(s string) int {
	if len(s) < 15 || !digit(s[2]) || !digit(s[3]) {
		return 0
	}
	want := sensitiveKinds().IBANs[strings.ToUpper(s[:2])]
	if want == 0 {
		return 0
	}
	var b [34]byte
	n, i := 0, 0
	for i < len(s) && n < want {
		switch c := s[i]; {
		case alnum(c):
			b[n] = c
			n++
		case c != ' ' || s[i-1] == ' ':
			return 0
		}
		i++
	}
	if n != want || i < len(s) && alnum(s[i]) {
		return 0
	}
	rem := 0
	for k := range n {
		c := b[(k+4)%n]
		if digit(c) {
			rem = (rem*10 + int(c-'0')) % 97
		} else {
			rem = (rem*100 + int(c|0x20-'a') + 10) % 97
		}
	}
	if rem != 1 {
		return 0
	}
	return i
}
