-- One row, the counters.
CREATE TABLE state (
	one     INTEGER PRIMARY KEY CHECK (one = 1),
	last    INTEGER NOT NULL, -- sequence number of the newest entry
	at      BLOB    NOT NULL, -- its system time
	records INTEGER NOT NULL, -- records in every state
	ids     INTEGER NOT NULL, -- ids up to this number are given out or reserved
	snaps   INTEGER NOT NULL, -- snapshots taken
	dirty   INTEGER NOT NULL  -- 1: something was forgotten and the file is not rewritten yet
) STRICT;
INSERT INTO state VALUES (1, 0, x'', 0, 0, 0, 0);

-- The append-only log. Times are 12 bytes that sort as the instants do.
CREATE TABLE entry (
	seq      INTEGER PRIMARY KEY,
	grp      INTEGER NOT NULL,
	at       BLOB    NOT NULL,
	cause    INTEGER NOT NULL,
	route    INTEGER NOT NULL,
	by       BLOB    NOT NULL,
	why      BLOB    NOT NULL,
	record   BLOB    NOT NULL,
	snapshot TEXT    NOT NULL,
	target   INTEGER NOT NULL,
	digest   BLOB    NOT NULL
) STRICT;
CREATE INDEX entry_at ON entry (at);

-- One row an entry that gives a record a new version. Text columns are BLOBs: a
-- record may hold bytes that are no text.
CREATE TABLE version (
	seq       INTEGER PRIMARY KEY REFERENCES entry (seq),
	first     INTEGER NOT NULL, -- seq of the record's first version
	until     INTEGER NOT NULL, -- seq of the version that replaced it, or 2^63-1
	id        BLOB    NOT NULL,
	store     BLOB    NOT NULL,
	key       BLOB    NOT NULL,
	principal BLOB    NOT NULL,
	source    BLOB    NOT NULL,
	state     INTEGER NOT NULL,
	size      INTEGER NOT NULL, -- bytes of the text
	forgotten INTEGER NOT NULL,
	salt      BLOB    NOT NULL,
	record    BLOB    NOT NULL  -- canonical encoding
) STRICT;
CREATE INDEX version_id ON version (id, seq);
CREATE INDEX version_first ON version (first, seq);
CREATE INDEX version_key ON version (key, seq);
CREATE INDEX version_principal ON version (principal, seq);
CREATE INDEX version_source ON version (source, seq);
CREATE INDEX version_stands ON version (store, key, first) WHERE until = 9223372036854775807 AND state <> 4;
CREATE INDEX version_visible ON version (store, first) WHERE until = 9223372036854775807 AND state <= 1;
CREATE INDEX version_waits ON version (state, seq) WHERE until = 9223372036854775807 AND state IN (1, 2, 3);

-- Which versions name a record in their lineage, or supersede it.
CREATE TABLE cite (
	record BLOB    NOT NULL,
	seq    INTEGER NOT NULL REFERENCES version (seq),
	PRIMARY KEY (record, seq)
) STRICT, WITHOUT ROWID;

-- Bytes of the visible entries of each store.
CREATE TABLE used (store BLOB PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE snapshot (
	n      INTEGER PRIMARY KEY,
	name   BLOB    NOT NULL,
	reason BLOB    NOT NULL,
	by     BLOB    NOT NULL,
	seq    INTEGER NOT NULL,
	at     BLOB    NOT NULL,
	root   BLOB    NOT NULL
) STRICT;

CREATE TABLE tombstone (
	seq    INTEGER PRIMARY KEY REFERENCES entry (seq),
	record BLOB NOT NULL,
	erased TEXT NOT NULL -- JSON
) STRICT;

-- What others keep beside the records: see Store.PutPages.
CREATE TABLE page (name BLOB PRIMARY KEY, data BLOB NOT NULL) STRICT, WITHOUT ROWID;
