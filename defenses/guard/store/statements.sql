-- Each statement stands behind a line that says who prepares it, and its name. VERSIONS is
-- the query for all versions.

-- read get
VERSIONS WHERE v.id = ? ORDER BY v.seq DESC LIMIT 1

-- read byKey
VERSIONS WHERE v.store = ? AND v.key = ? AND v.until = 9223372036854775807 AND v.state <> 4
ORDER BY CASE v.state WHEN 0 THEN 0 WHEN 1 THEN 1 ELSE 2 END, v.first DESC LIMIT 1

-- read all
VERSIONS WHERE v.until = 9223372036854775807 ORDER BY v.first

-- read count
SELECT records FROM state

-- read used
SELECT bytes FROM used WHERE store = ?

-- read last
SELECT last FROM state

-- read taken
SELECT EXISTS (SELECT 1 FROM version WHERE id = ?)

-- read snapshots
SELECT 's' || n, name, reason, by, seq, at, nullif(root, x'') FROM snapshot ORDER BY n

-- read tombstones
SELECT t.seq, t.record, e.at, e.by, e.why, t.erased FROM tombstone t JOIN entry e USING (seq) ORDER BY t.seq

-- read page
SELECT data FROM page WHERE name = ?

-- read at
SELECT seq FROM entry WHERE at <= ? ORDER BY at DESC, seq DESC LIMIT 1

-- write state
SELECT last, at, records, ids, snaps FROM state

-- write setState
UPDATE state SET last = ?, at = ?, records = ?, ids = ?, snaps = ?

-- write entry
INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- write version
INSERT INTO version VALUES (?, ?, 9223372036854775807, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- write until
UPDATE version SET until = ? WHERE seq = ?

-- write known
SELECT seq, first, store, key, state, size, forgotten FROM version WHERE id = ? ORDER BY seq DESC LIMIT 1

-- write used
INSERT INTO used VALUES (?1, ?2) ON CONFLICT DO UPDATE SET bytes = bytes + ?2

-- write snapshot
INSERT INTO snapshot VALUES (?, ?, ?, ?, ?, ?, ?)

-- write history
SELECT v.seq, v.salt, v.record, e.digest FROM version v JOIN entry e USING (seq) WHERE v.id = ? ORDER BY v.seq

-- write blank
UPDATE version SET key = x'', source = x'', size = 0, forgotten = 1, salt = ?, record = ? WHERE seq = ?

-- write seal
UPDATE snapshot SET root = ?1 WHERE 's' || n = ?2 AND root IN (x'', ?1)

-- write pageNow
SELECT data FROM page WHERE name = ?

-- write page
INSERT INTO page VALUES (?1, ?2) ON CONFLICT DO UPDATE SET data = ?2

-- write tombstone
INSERT INTO tombstone VALUES (?, ?, ?)

-- write cite
INSERT OR IGNORE INTO cite VALUES (?, ?)

-- Of these each row of an answer is a version, or a place in the file, at fault; the name says why.

-- index the index says another thing than which version of the record was the first and which one replaced it
SELECT seq, id FROM (SELECT seq, id, first, until, first_value(seq) OVER w AS began,
	lead(seq, 1, 9223372036854775807) OVER w AS next FROM version WINDOW w AS (PARTITION BY id ORDER BY seq))
WHERE first <> began OR until <> next

-- fault pages of the file are damaged
SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'

-- fault a counter of the store is wrong
SELECT 'last' FROM state WHERE last <> (SELECT coalesce(max(seq), 0) FROM entry) UNION ALL
SELECT 'at' FROM state WHERE at <> coalesce((SELECT at FROM entry ORDER BY seq DESC LIMIT 1), x'') UNION ALL
SELECT 'records' FROM state WHERE records <> (SELECT count(DISTINCT id) FROM version) UNION ALL
SELECT 'snaps' FROM state WHERE snaps <> (SELECT coalesce(max(n), 0) FROM snapshot) UNION ALL
SELECT 'state' WHERE (SELECT count(*) FROM state) <> 1

-- fault the bytes of a store are wrong
SELECT CAST(store AS TEXT) FROM (SELECT store, sum(bytes) AS n FROM (SELECT store, bytes FROM used UNION ALL
	SELECT store, -size FROM version WHERE until = 9223372036854775807 AND state <= 1) GROUP BY store) WHERE n <> 0

-- fault a snapshot is not the one in the journal
SELECT 's' || n FROM snapshot s LEFT JOIN entry e ON e.seq = s.seq
WHERE e.seq IS NULL OR e.cause <> 10 OR e.snapshot <> 's' || n OR e.why <> s.reason OR e.by <> s.by OR e.at <> s.at
