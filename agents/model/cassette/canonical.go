package cassette

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxSorted is how deep a text may be nested for its objects to be sorted. Sorting
// moves what they hold: without a bound the work would be quadratic for text nested
// deeply on purpose.
const maxSorted = 64

// canonical is a JSON text without white space and with the members of objects
// sorted; strings and numbers stand as they were sent. What is not JSON stays as
// it is.
func canonical(body []byte) []byte {
	v := jsontext.Value(bytes.Clone(body))
	if v.Format(jsontext.ReorderRawObjects(depth(body) <= maxSorted), jsontext.PreserveRawStrings(true),
		jsontext.CanonicalizeRawInts(false),
		jsontext.CanonicalizeRawFloats(false), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
		return body
	}
	return v
}

func depth(body []byte) (most int) {
	d := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for err := error(nil); err == nil; _, err = d.ReadToken() {
		most = max(most, d.StackDepth())
	}
	return most
}

// operation is the method, path behind base, and query of a request. The values of query
// members that carry keys, signatures or the time are left out.
func operation(r *http.Request, base string) string {
	op := r.Method + " " + strings.TrimPrefix(r.URL.EscapedPath(), base)
	if r.URL.RawQuery == "" {
		return op
	}
	q := r.URL.Query()
	for name := range q {
		switch strings.ToLower(name) {
		case "key", "api_key", "api-key", "apikey", "token", "access_token", "sig", "signature", "code", "ts":
			q[name] = []string{""}
		}
	}
	s, err := url.QueryUnescape(q.Encode())
	if err != nil {
		return op
	}
	return op + "?" + s
}

func hashOf(op string, body []byte) [32]byte {
	h := sha256.New()
	h.Write([]byte(op))
	h.Write([]byte{'\n'})
	h.Write(body)
	return [32]byte(h.Sum(nil))
}
