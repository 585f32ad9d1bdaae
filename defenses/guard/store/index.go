package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

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

func (s *History) checkIndex(ctx context.Context, told func(seq uint64, record, what string)) error {
	for what, query := range statementsOf("index") {
		for row, err := range answer(s.read.QueryContext(ctx, query)) {
			var seq uint64
			var id string
			if err == nil {
				err = row.Scan(&seq, &id)
			}
			if err != nil {
				return err
			}
			told(seq, id, what)
		}
	}
	for row, err := range answer(s.read.QueryContext(ctx, `SELECT seq, id, store, key, principal, source, state, size, record, coalesce(cited, '')
		FROM version LEFT JOIN (SELECT seq, group_concat(hex(record), ' ' ORDER BY record) AS cited FROM cite GROUP BY seq) USING (seq)
		ORDER BY version.seq`)) {
		var seq uint64
		var state, size int64
		var id, store, key, principal, source, cited string
		var enc sql.RawBytes
		if err == nil {
			err = row.Scan(&seq, &id, &store, &key, &principal, &source, &state, &size, &enc, &cited)
		}
		if err != nil {
			return err
		}
		r, err := memory.ParseCanonical(enc)
		if err != nil {
			continue // which its digest tells
		}
		if r.ID != id || r.Store != store || r.Key != key || r.Principal != principal || r.Origin.Source != source ||
			int64(r.State) != state || int64(len(r.Text)) != size {
			told(seq, id, "the index has another id, store, key, principal, source, state or size than the record")
		}
		var cites []string
		for _, c := range slices.Sorted(maps.Keys(citationsOf(&r))) {
			cites = append(cites, fmt.Sprintf("%X", c))
		}
		if strings.Join(cites, " ") != cited {
			told(seq, id, "the index says that it derives from or supersedes other records than it does")
		}
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

// CheckFile looks at what no digest covers: the pages of the file, its tables, its
// counters, snapshots that are not sealed yet.
func (s *History) CheckFile(ctx context.Context, told func(what string)) error {
	if err := s.checkFile(ctx, func(what string) { told(filepath.Base(s.path) + ": " + what) }); err != nil {
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
	for what, query := range statementsOf("fault") {
		for row, err := range answer(tx.QueryContext(ctx, query)) {
			var at string
			if err == nil {
				err = row.Scan(&at)
			}
			if err != nil {
				return err
			}
			told(what + ": " + at)
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
	err = errors.Join(fresh.QueryRowContext(ctx, tables).Scan(&want), tx.QueryRowContext(ctx, tables).Scan(&have))
	if err == nil && want != have {
		told("its tables are not those that memtox makes")
	}
	return err
}
