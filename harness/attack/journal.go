package attack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/memtox/memtox/attacks"
	"github.com/memtox/memtox/datasets"
	"github.com/memtox/memtox/harness"
	"github.com/memtox/memtox/internal/settings"
	"github.com/memtox/memtox/results"
)

// A line of a campaign's journal is a JSON object whose last member is the SHA-256
// of the line before's, in hexadecimal, and of the object without that member.
const (
	sealOpens, sealEnds = `,"sha256":"`, `"}`
	sealLength          = len(sealOpens) + 2*sha256.Size + len(sealEnds)
)

// seal returns an object as a line of a journal, and the line's digest.
func seal(before string, object []byte) (line []byte, sum string) {
	h := sha256.Sum256(append([]byte(before), object...))
	sum = hex.EncodeToString(h[:])
	return append(object[:len(object)-1:len(object)-1], sealOpens+sum+sealEnds...), sum
}

// unseal returns the digest of a line, where that is what the line says.
func unseal(before string, line []byte) (sum string, ok bool) {
	at := len(line) - sealLength
	if at < 1 {
		return "", false
	}
	sealed, sum := seal(before, append(line[:at:at], '}'))
	return sum, bytes.Equal(sealed, line)
}

// read takes what an earlier process wrote, once it is known for that and for
// something that this search can have found.
func (s *Campaign) read(dir string) (err error) {
	path := filepath.Join(dir, journalFile)
	arms := map[string]map[string]*datasets.Case{}
	learn := map[string]int{}
	for i := range s.x.Plan.Arms {
		name, byCase := s.armName(i), map[string]*datasets.Case{}
		for _, c := range s.cases(s.report, i) {
			byCase[c.ID] = &c
		}
		arms[name], learn[name] = byCase, len(s.cases(s.learn, i))
	}
	s.journal, err = results.OpenLines(dir, journalFile, datasets.MaxLine, func(n int, text []byte, whole bool) error {
		at := fmt.Sprintf("%s:%d", path, n)
		if !whole { // a line is written with its end, in one call: a death can cut it, not change that
			if _, ok := unseal(s.sum, text[:len(text)-1]); ok {
				return results.Changed(at, "another byte stands where the line ends")
			}
			return nil
		}
		var l line
		sum, ok := unseal(s.sum, text)
		err := json.Unmarshal(text, &l)
		switch {
		case n == 1 && !ok && err == nil && l.Settings != nil && !bytes.Contains(text, []byte(sealOpens)):
			return &settings.Problem{Where: dir, What: "holds an attack of an earlier memtox, without digests: what it found " +
				"cannot be verified",
				Hint: "attack again, into another directory with --out"}
		case !ok:
			return results.Changed(at, "its digest is not that of its content and of the lines before it")
		case err != nil:
			return results.Changed(at, "%v", err)
		case n == 1 && l.Settings == nil:
			return results.Changed(at, "it does not say what the attack is")
		case n == 1:
			if diff := s.settings().differences(l.Settings); len(diff) > 0 {
				return &settings.Problem{Where: dir, What: "holds an attack with other settings: " + harness.Listed(diff),
					Hint: "give the settings that it was started with, or choose another --out"}
			}
		default:
			if err := s.take(l, arms[l.Arm], learn[l.Arm]); err != nil {
				return results.Changed(at, "%v", err)
			}
		}
		s.sum = sum
		return nil
	})
	if err != nil {
		return err
	}
	for i := range s.files {
		if err := s.files[i].Check(dir); err != nil {
			return err
		}
	}
	return nil
}

// take holds a line against the plan, and keeps it. cases are those that are reported
// on in its arm, nil where there is no such arm, and learn is on how many it learns.
func (s *Campaign) take(l line, cases map[string]*datasets.Case, learn int) error {
	if l.Files != nil {
		for i, f := range l.Files {
			base, winner := strings.CutPrefix(f.Name, winnersFolder+"/")
			if i == 0 && f.Name != resultFile || i > 0 && (!winner || base != fileName(base)) || f.SHA256 == "" {
				return fmt.Errorf("%q is no file of an attack", f.Name)
			}
		}
		s.files = l.Files
		return nil
	}
	if cases == nil {
		return fmt.Errorf("the arm %q is not one of this attack", l.Arm)
	}
	if l.Learned {
		if _, twice := s.learned[l.Arm]; twice {
			return fmt.Errorf("%s is learned twice", l.Arm)
		}
		if l.Queries < 0 || l.Queries > s.Budget*learn || l.Queries == 0 && len(l.Portfolio) > 0 {
			return fmt.Errorf("%d queries to learn on %d cases are not within the budget of %d", l.Queries, learn, s.Budget)
		}
		if _, err := attacks.ParsePortfolio(l.Portfolio); err != nil {
			return err
		}
		s.learned[l.Arm] = l
		return nil
	}
	if l.Found == nil {
		return errors.New("it says nothing")
	}
	c := cases[l.Found.Case]
	if c == nil {
		return fmt.Errorf("the case %q is not one that is reported on in %s", l.Found.Case, l.Arm)
	}
	if _, twice := s.found[l.Arm][c.ID]; twice {
		return fmt.Errorf("%s in %s is found twice", c.ID, l.Arm)
	}
	if err := l.Found.Check(c, s.Budget); err != nil {
		return err
	}
	if l.Fresh < 0 || l.Fresh > s.fresh || l.Fresh > 0 && l.Found.Landed == 0 {
		return fmt.Errorf("%d fresh epochs in which it landed, of %d", l.Fresh, s.fresh)
	}
	if err := s.checkWinner(&l, c); err != nil {
		return err
	}
	s.keep(l)
	return nil
}

// checkWinner compares a winner with the variant that its sequence makes. What a
// model worded cannot be made again.
func (s *Campaign) checkWinner(l *line, c *datasets.Case) error {
	sequence := l.Found.Sequence
	var winner datasets.Case
	switch {
	case sequence == "":
		if l.Winner != nil {
			return errors.New("it has a winner that no sequence made")
		}
		return nil
	case s.rewriter != nil && strings.HasPrefix(sequence, attacks.RewriterPrefix):
		err := json.Unmarshal(l.Winner, &winner)
		if err != nil || winner.VariantOf != c.ID || winner.Variant != sequence {
			return fmt.Errorf("its winner is not the variant %s of %s", sequence, c.ID)
		}
		return nil
	}
	q, err := attacks.ParseSequence(sequence)
	if err != nil {
		return err
	}
	winner, ok := q.Apply(*c)
	if !ok {
		return fmt.Errorf("the sequence %s does not apply to %s", sequence, c.ID)
	}
	want, err := json.Marshal(json.RawMessage(datasets.AppendCase(nil, &winner)))
	if err != nil || !bytes.Equal(want, l.Winner) {
		return fmt.Errorf("its winner is not what the sequence %s makes of %s", sequence, c.ID)
	}
	return nil
}

// finish has the journal end with the digests of the result and the winners.
func (s *Campaign) finish(dir string, r *Result) error {
	names := []string{resultFile}
	for i := range r.Arms {
		if r.Arms[i].File != "" {
			names = append(names, r.Arms[i].File)
		}
	}
	var files []results.File
	for _, name := range names {
		f, err := results.FileOf(dir, name)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	if slices.Equal(files, s.files) {
		return nil
	}
	s.files = files
	return s.append(line{Files: files})
}
