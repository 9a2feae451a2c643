-- A board in a database of its own. Every text here is ASCII: ids as names spell them, other texts
-- as JSON escapes them. Times are nanoseconds of this server's clock.

CREATE SCHEMA dibs;

CREATE TABLE dibs.meta (key text PRIMARY KEY, value text NOT NULL);

-- The histories of the board, the newest last: another one begins on a standby that is promoted, or
-- where a backup or a dump was restored, because what came later in the one before may be lost. A line
-- is the lowest fence of its history, and higher than those of every other; that of the first is a
-- negative number of this board alone. Only `server` ever changes.
CREATE TABLE dibs.history (
  line bigint PRIMARY KEY,
  parent bigint NOT NULL,
  began xid8 NOT NULL, -- no transaction of the parent is later
  name text NOT NULL,
  server text NOT NULL
);

-- One row for each id that was ever added. The name is the exact name, and NULL while nothing has
-- the id: the state is then 'past' (purged) or 'gone' (forgotten). A row is never deleted, so no
-- fence and no number of an event is given twice.
CREATE TABLE dibs.task (
  eid text COLLATE "C" PRIMARY KEY,
  name text COLLATE "C" UNIQUE,
  state text NOT NULL,
  fence bigint NOT NULL,
  attempts integer NOT NULL,
  priority smallint NOT NULL,
  question bigint NOT NULL,
  answer integer NOT NULL,
  not_before bigint NOT NULL,
  claim text COLLATE "C" NOT NULL,
  since bigint NOT NULL,
  events bigint NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX task_queue ON dibs.task (priority DESC, eid) WHERE state = 'available';
CREATE INDEX task_later ON dibs.task (not_before) WHERE state = 'later';
-- A nonce claims once: a request that reaches the server after its client has asked again fails.
CREATE UNIQUE INDEX task_claim ON dibs.task (claim) WHERE state IN ('claimed', 'held');

CREATE TABLE dibs.payload (eid text COLLATE "C" PRIMARY KEY, data bytea NOT NULL);

-- A row exists exactly while the task is claimed or the lock is held. Heartbeats change only this
-- table, and no index on it.
CREATE TABLE dibs.claim (
  eid text COLLATE "C" PRIMARY KEY,
  name text COLLATE "C" NOT NULL,
  beat bigint NOT NULL,
  ttl double precision NOT NULL,
  since bigint NOT NULL,
  process boolean NOT NULL,
  record bytea NOT NULL,
  note text NOT NULL DEFAULT '',
  noted bigint NOT NULL DEFAULT 0,
  doubted bigint NOT NULL DEFAULT 0 -- when its lease was first seen to be over, unproven
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);

-- What happened. `n` has no gap within an id; `act` is made by the caller for one call, so that a
-- call whose answer was lost can be repeated; readers follow `line` and `xid`, which counts only in its
-- own history.
CREATE TABLE dibs.event (
  seq bigint GENERATED ALWAYS AS IDENTITY,
  eid text COLLATE "C" NOT NULL,
  n bigint NOT NULL,
  line bigint NOT NULL,
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  at bigint NOT NULL,
  verb text NOT NULL,
  src text NOT NULL,
  dst text NOT NULL,
  by text NOT NULL,
  reason text NOT NULL,
  note text NOT NULL,
  act text NOT NULL,
  PRIMARY KEY (eid, n)
);
CREATE INDEX event_seq ON dibs.event (seq);
CREATE INDEX event_xid ON dibs.event (line, xid);
CREATE INDEX event_at ON dibs.event USING brin (at);

CREATE TABLE dibs.question (
  eid text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  answer integer NOT NULL, -- 0 is the question itself
  data bytea NOT NULL,
  PRIMARY KEY (eid, fence, answer)
);

CREATE TABLE dibs.result (
  stem text COLLATE "C" PRIMARY KEY,
  eid text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  at bigint NOT NULL,
  data bytea NOT NULL
);
CREATE INDEX result_eid ON dibs.result (eid);

CREATE TABLE dibs.output (
  stem text COLLATE "C" NOT NULL,
  begins bigint NOT NULL,
  tail boolean NOT NULL,
  eid text COLLATE "C" NOT NULL,
  fence bigint NOT NULL,
  at bigint NOT NULL,
  data bytea NOT NULL,
  PRIMARY KEY (stem, begins)
);
CREATE INDEX output_eid ON dibs.output (eid);

CREATE TABLE dibs.pause (
  name text COLLATE "C" PRIMARY KEY,
  until bigint,
  locks boolean NOT NULL,
  data bytea NOT NULL
);

CREATE TABLE dibs.waiter (
  name text COLLATE "C" PRIMARY KEY,
  touched bigint NOT NULL,
  data bytea NOT NULL
);
