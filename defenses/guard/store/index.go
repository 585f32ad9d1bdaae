package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/memtox/memtox/agents/memory"
)

// CheckIndex compares what the file looks records up by (ids, keys, sources, states,
// which version is current, which version cites which record) with the records
// themselves, and tells each version for which they differ. A digest covers the
// record alone: whoever changes a column from outside could show a quarantined
// record, or hide what derives from a bad one.
func (s *History) CheckIndex(ctx context.Context, told func(seq uint64, record, what string)) error {
	if err := s.checkIndex(ctx, told); err != nil {
		return fmt.Errorf("comparing the index with the records: %w", s.named(err))
	}
	return nil
}

// CheckFile looks at what no digest covers: the pages of the file, its tables, its
// counters, snapshots that are not sealed yet.
func (s *History) CheckFile(ctx context.Context, told func(what string)) error {
	if err := s.checkFile(ctx, told); err != nil {
		return fmt.Errorf("checking the file: %w", s.named(err))
	}
	return nil
}

func (s *History) checkFile(ctx context.Context, told func(what string)) error {
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer tx.Rollback()
	file := filepath.Base(s.path)
	for what, query := range statementsOf("fault") {
		rows, err := tx.QueryContext(ctx, query)
		if err != nil {
			return err
		}
		for rows.Next() {
			var at string
			if err := rows.Scan(&at); err != nil {
				return errors.Join(err, rows.Close())
			}
			told(file + ": " + what + ": " + at)
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return err
		}
	}
	// A table that is not ours could hide another.
	fresh, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer fresh.Close()
	fresh.SetMaxOpenConns(1)
	if _, err := fresh.ExecContext(ctx, schema); err != nil {
		return err
	}
	const tables = `SELECT group_concat(type || ' ' || name || ' ' || tbl_name || ' ' || coalesce(sql, ''), ';' ORDER BY name) FROM sqlite_schema`
	var want, have sql.NullString
	if err := errors.Join(fresh.QueryRowContext(ctx, tables).Scan(&want), tx.QueryRowContext(ctx,
		tables).Scan(&have)); err != nil {
		return err
	}
	if want != have {
		told(file + ": its tables are not those that memtox makes")
	}
	return nil
}

func (s *History) checkIndex(ctx context.Context, told func(seq uint64, record, what string)) error {
	cited, err := s.read.PrepareContext(ctx, `SELECT EXISTS (SELECT 1 FROM cite WHERE record = ? AND seq = ?)`)
	if err != nil {
		return err
	}
	defer cited.Close()
	rows, err := s.read.QueryContext(ctx, `SELECT seq, first, until, id, store, key, principal, source, state, size, record FROM version ORDER BY id, seq`)
	if err != nil {
		return err
	}
	defer rows.Close()
	type row struct {
		seq, first, until, state, size         int64
		id, store, key, principal, source, enc []byte
	}
	var before row
	ended := func() { // the last version of a record
		if before.seq != 0 && before.until != current {
			told(uint64(before.seq), string(before.id), "the index says that a later version replaced it, and there is none")
		}
	}
	citations, whole, last := 0, true, int64(0)
	for rows.Next() {
		var x row
		if err := rows.Scan(&x.seq, &x.first, &x.until, &x.id, &x.store, &x.key, &x.principal, &x.source, &x.state, &x.size,
			&x.enc); err != nil {
			return err
		}
		last = max(last, x.seq)
		bad := func(what string) { told(uint64(x.seq), string(x.id), what) }
		first := x.seq
		if string(x.id) == string(before.id) && before.seq != 0 {
			first = before.first
			if before.until != x.seq {
				told(uint64(before.seq), string(before.id), fmt.Sprintf("the index says another thing than that entry %d "+
					"replaced it", x.seq))
			}
		} else {
			ended()
		}
		if x.first != first {
			bad("the index has another first version")
		}
		before = x
		r, err := memory.ParseCanonical(x.enc)
		if err != nil { // which its digest tells
			whole = false
			continue
		}
		if r.ID != string(x.id) || r.Store != string(x.store) || r.Key != string(x.key) ||
			r.Principal != string(x.principal) ||
			r.Origin.Source != string(x.source) || int64(r.State) != x.state || int64(len(r.Text)) != x.size {
			bad("the index has another id, store, key, principal, source, state or size than the record")
		}
		for id := range citationsOf(&r) {
			citations++
			var there bool
			if err := cited.QueryRowContext(ctx, []byte(id), x.seq).Scan(&there); err != nil {
				return err
			}
			if !there {
				bad(fmt.Sprintf("the index does not say that it derives from or supersedes record %q", id))
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	ended()
	var all int
	// Of the versions that were read: another process may have written more since.
	if err := s.read.QueryRowContext(ctx, `SELECT count(*) FROM cite WHERE seq IN (SELECT seq FROM version) AND seq <= ?`,
		last).Scan(&all); err != nil {
		return err
	}
	if whole && all > citations {
		told(0, "", fmt.Sprintf("the index says %d times that a version derives from or supersedes a record, and the "+
			"records %d times", all, citations))
	}
	return nil
}

// citationsOf are the records that a record's lineage names and that it supersedes.
func citationsOf(r *memory.Record) map[string]bool {
	out := map[string]bool{}
	for _, l := range r.Lineage {
		out[l.Record] = true
	}
	out[r.Parent] = true
	delete(out, "")
	return out
}
