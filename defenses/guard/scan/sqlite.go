package scan

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	_ "modernc.org/sqlite" // the driver

	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/defenses/guard/store"
)

// database scans the text of a SQLite database: the records of a durable store of
// memtox, and of any other file every column of every table.
func (s *scanner) database() error {
	st, err := store.Open(s.ctx, s.name, store.Options{ReadOnly: true})
	switch {
	case err == nil:
		err = s.store(st)
		err = errors.Join(err, st.Close())
	case errors.Is(err, store.ErrForeign):
		err = s.tables()
	}
	if s.ctx.Err() != nil {
		return nil // it was broken off
	}
	return err
}

func (s *scanner) store(st *store.History) error {
	for v, err := range st.Versions(s.ctx, store.Filter{Current: true}) {
		if err != nil {
			return err
		}
		r := &v.Record
		if r.State == memory.Retired {
			continue // no session sees it again
		}
		s.report.Bytes += int64(len(r.Text))
		if s.report.Bytes > s.maxDB {
			return fmt.Errorf("holds more than %d bytes of text: raise --max-bytes", s.maxDB)
		}
		entry(s, r.Text, r.Key, "record "+r.ID+" ("+r.State.String()+")", func(int) int { return 0 }, nil)
	}
	return nil
}

func (s *scanner) tables() (err error) {
	abs, err := filepath.Abs(s.name)
	if err != nil {
		return err
	}
	q := url.Values{"mode": {"ro"}, "_pragma": {"query_only(1)", "trusted_schema(0)", "busy_timeout(2000)"}}
	// Without a log beside it the file is all there is, and nothing needs to be
	// made beside it to read it.
	if info, err := os.Stat(s.name + "-wal"); err != nil || info.Size() == 0 {
		q.Set("immutable", "1")
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(abs), RawQuery: q.Encode()}
	if !strings.HasPrefix(u.Path, "/") {
		u.Path = "/" + u.Path
	}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	// A virtual table runs code of its own; what it keeps stands in plain tables
	// beside it.
	tables, err := column(s.ctx, db, `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name`)
	if err != nil {
		return err
	}
	left := s.maxDB
	for _, t := range tables {
		// Only what is stored: a generated column has no more to say.
		columns, err := column(s.ctx, db, `SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0`, t)
		if err != nil {
			return fmt.Errorf("table %s: %w", t, err)
		}
		if len(columns) == 0 {
			continue
		}
		if err := s.table(db, t, columns, &left); err != nil {
			return fmt.Errorf("table %s: %w", t, err)
		}
	}
	return nil
}

func column(ctx context.Context, db *sql.DB, query string, args ...any) (out []string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func (s *scanner) table(db *sql.DB, name string, columns []string, left *int64) (err error) {
	// A value that is too large is counted and not read.
	names, large := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		large[i] = fmt.Sprintf("(coalesce(octet_length(%s), 0) > %d)", quoted(c), maxLiteral)
		names[i] = fmt.Sprintf("iif(%s, NULL, %s)", large[i], quoted(c))
	}
	names = append(names, strings.Join(large, " + "))
	rows, err := db.QueryContext(s.ctx, "SELECT "+strings.Join(names, ", ")+" FROM "+quoted(name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	cells, to, skipped := make([]any, len(columns)), make([]any, len(columns)), 0
	for i := range cells {
		to[i] = &cells[i]
	}
	to = append(to, &skipped)
	for n := 1; rows.Next(); n++ {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if skipped > 0 {
			s.fail(fmt.Sprintf("table %s, row %d: a value is larger than %d bytes and was not scanned", name, n, maxLiteral))
		}
		for i, c := range cells {
			text := ""
			switch c := c.(type) {
			case string:
				text = c
			case []byte:
				text = words(c)
			}
			if text == "" {
				continue
			}
			if *left -= int64(len(text)); *left < 0 {
				return fmt.Errorf("the database holds more than %d bytes of text: raise --max-bytes", s.maxDB)
			}
			s.report.Bytes += int64(len(text))
			entry(s, text, "", fmt.Sprintf("table %s, column %s, row %d", name, columns[i], n), func(int) int { return 0 }, nil)
		}
	}
	return rows.Err()
}

var printable = regexp.MustCompile(`[^\x00-\x08\x0b-\x1f\x7f\x{FFFD}]+`)

// words is what can be read in a blob: all of it where it is text, else its runs of
// printable characters, as serialised objects have them.
func words(b []byte) string {
	if utf8.Valid(b) && !bytes.Contains(b, []byte{0}) {
		return string(b)
	}
	const least = 8
	runs := slices.DeleteFunc(printable.FindAll(b, -1), func(run []byte) bool { return len(run) < least })
	return string(bytes.Join(runs, []byte{'\n'}))
}
