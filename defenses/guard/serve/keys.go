package serve

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/memtox/memtox/defenses/guard/store"
	"github.com/memtox/memtox/defenses/signed"
	"github.com/memtox/memtox/internal/settings"
)

// ReadKeys reads the key that signs a memory: an id and a secret in hexadecimal, a
// line each key, the signing one first. Errors call the file by its name.
// Where there is none it makes one, if now is not zero.
func ReadKeys(path, name string, now time.Time) (*signed.Keyring, error) {
	b, err := store.ReadKey(path)
	if errors.Is(err, fs.ErrNotExist) && !now.IsZero() {
		secret := make([]byte, 32)
		rand.Read(secret)
		b = fmt.Appendf(nil, "k%s %x", now.UTC().Format("20060102"), secret)
		err := store.WriteKey(path, string(b), 0o600)
		if errors.Is(err, fs.ErrExist) { // somebody else was quicker
			return ReadKeys(path, name, time.Time{})
		}
		if err != nil {
			return nil, &settings.Problem{Where: "--key", Err: fmt.Errorf("writing the key: %w", err)}
		}
	} else if err != nil {
		if p := (*settings.Problem)(nil); errors.As(err, &p) {
			return nil, err
		}
		return nil, &settings.Problem{Where: "--key", Err: err,
			Hint: "--key FILE names the key that `memtox guard serve` signs with"}
	}
	var keys []signed.Key
	line := 0
	for l := range bytes.Lines(b) {
		line++
		fields := strings.Fields(string(l))
		if len(fields) == 0 {
			continue
		}
		// Nothing of the line may stand in the error: it may be a secret.
		wrong := &settings.Problem{Where: fmt.Sprintf("%s:%d", name, line),
			What: "a line is the id of a key and its secret in hexadecimal"}
		if len(fields) != 2 {
			return nil, wrong
		}
		secret, err := hex.DecodeString(fields[1])
		if err != nil {
			return nil, wrong
		}
		keys = append(keys, signed.Key{ID: fields[0], Secret: secret})
	}
	ring, err := signed.NewKeyring(keys...)
	if err != nil {
		return nil, &settings.Problem{Where: name, Err: err}
	}
	return ring, nil
}
