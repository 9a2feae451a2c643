-- The transitions: each is one statement for its caller, and compares the exact name. They and the
-- limits of the tables are replaced by each `dibs upgrade`; the tables are not.

CREATE OR REPLACE FUNCTION dibs.clock() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1000
$$;

-- A change of state must survive a crash of the server, whatever the session says. And it must see
-- what was committed while it waited for a lock.
CREATE OR REPLACE FUNCTION dibs.durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE active_sql_transaction USING MESSAGE = 'a step of a board needs the isolation level '
      || 'read committed, got ' || current_setting('transaction_isolation');
  END IF;
  IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write') THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END
$$;

CREATE OR REPLACE FUNCTION dibs.stamp(
  fence bigint, attempts integer, priority smallint, question bigint, answer integer
) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT 'f' || fence::text -- with casts, so that callers have it inline
    || CASE WHEN attempts > 0 THEN 'a' || attempts::text ELSE '' END
    || CASE WHEN priority <> 5 THEN 'p' || priority::text ELSE '' END
    || CASE WHEN question > 0 THEN 'q' || question::text ELSE '' END
    || CASE WHEN answer > 0 THEN 'r' || answer::text ELSE '' END
$$;

-- What names and values may be. The transitions refuse what is outside these limits, and so do the
-- tables below; the queue passes over a row that is there in spite of them. In plpgsql, because a
-- condition of a table that is LANGUAGE sql is parsed anew for each statement: a claim took 4 times
-- as long.

CREATE OR REPLACE FUNCTION dibs.is_id(p_eid text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN octet_length(p_eid) <= 120 AND (p_eid COLLATE "C" ~ '^[A-Za-z0-9_-]+$' -- nearly always
    OR p_eid COLLATE "C" ~ ( -- no byte is escaped that need not be
      '^([A-Za-z0-9_-]|=([0189A-F][0-9A-F]|2[0-9A-CEF]|3[A-F]|40|5[B-E]|60|7[B-F]))+$'));
END
$$;

CREATE OR REPLACE FUNCTION dibs.is_claim(p_claim text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN p_claim COLLATE "C" ~ '^[A-Za-z0-9_-]{1,40}-[0-9A-F]{10}$';
END
$$;

CREATE OR REPLACE FUNCTION dibs.is_ttl(p_ttl double precision) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN p_ttl >= 1 AND p_ttl <= 86400; -- NaN is above every number
END
$$;

-- A text as JSON escapes it: printable ASCII, and not longer.
CREATE OR REPLACE FUNCTION dibs.is_text(p_text text, p_most integer) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN octet_length(p_text) <= p_most AND p_text COLLATE "C" !~ '[^ -~]';
END
$$;

-- The exact name that these fields make; a free lock has it behind its folder.
CREATE OR REPLACE FUNCTION dibs.spell(
  p_eid text, p_state text, p_fence bigint, p_attempts integer, p_priority smallint,
  p_question bigint, p_answer integer, p_not_before bigint, p_claim text, p_folder text
) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE WHEN p_state = 'free' THEN p_folder || '/' || p_eid || '.f' || p_fence::text
    ELSE CASE WHEN p_state IN ('done', 'failed') THEN p_state || '/' ELSE '' END || p_eid
      || CASE WHEN p_state = 'available'
          AND (p_fence, p_attempts, p_priority, p_question, p_answer) = (0, 0, 5, 0, 0) THEN ''
        ELSE '.' || dibs.stamp(p_fence, p_attempts, p_priority, p_question, p_answer) END
      || CASE WHEN p_not_before > 0 THEN 'n' || p_not_before::text ELSE '' END
      || CASE WHEN p_claim <> '' THEN '.' || p_claim ELSE '' END
      || CASE WHEN p_state IN ('done', 'failed') THEN '' ELSE '.' || p_state END
    END;
END
$$;

-- Whether a row of a task is within the limits, and its name says what its fields do.
CREATE OR REPLACE FUNCTION dibs.is_task(
  p_eid text, p_name text, p_state text, p_fence bigint, p_attempts integer, p_priority smallint,
  p_question bigint, p_answer integer, p_not_before bigint, p_claim text
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN p_fence BETWEEN 0 AND 999999999999999999 AND p_attempts BETWEEN 0 AND 999999999
    AND p_priority BETWEEN 0 AND 9 AND p_question BETWEEN 0 AND 999999999999999999
    AND p_answer BETWEEN 0 AND 999999999 AND (p_answer = 0 OR p_question > 0)
    AND p_not_before BETWEEN 0 AND 99999999999 AND (p_not_before > 0) = (p_state = 'later')
    AND CASE
      WHEN p_name IS NULL
        THEN p_state IN ('past', 'gone') AND dibs.is_id(p_eid) OR p_state = 'gone' AND p_eid = ''
      WHEN NOT dibs.is_id(p_eid) THEN false
      WHEN p_claim <> '' AND NOT dibs.is_claim(p_claim) THEN false
      WHEN p_state = 'free' AND p_name COLLATE "C" !~ '^[.]dibs/free/[0-9a-f]{3}/' THEN false
      WHEN p_state NOT IN ('available', 'later', 'claimed', 'held', 'asked', 'done', 'failed',
        'free') THEN false
      ELSE (p_claim <> '') = (p_state IN ('claimed', 'held', 'asked', 'done', 'failed'))
        AND p_name = dibs.spell(p_eid, p_state, p_fence, p_attempts, p_priority, p_question,
          p_answer, p_not_before, p_claim, left(p_name, 14)) IS TRUE
    END;
END
$$;

-- Refuse a call whose values are outside the limits, without a trace.
CREATE OR REPLACE FUNCTION dibs.refuse(p_what text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  RAISE invalid_parameter_value USING MESSAGE = p_what || ' is outside the limits of a board';
END
$$;

-- What changes when another server, or another history of it, has the board, or a restore makes the
-- tables again; also with each start of a server. It is asked for each change, so it is fast.
CREATE OR REPLACE FUNCTION dibs.server() RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) || ' '
    || extract(epoch FROM pg_postmaster_start_time())::text || ' '
    || regexp_replace(pg_relation_filepath('dibs.meta'), '/[^/]*$', '') || ' '
    || 'dibs.history'::regclass::oid::text
$$;

-- The name of the history that this server writes. It has the cluster, database and table, which only a
-- restore makes again; then the timeline, and the base backup that the server was started from, because
-- one that is started without a recovery keeps the timeline.
CREATE OR REPLACE FUNCTION dibs.lineage() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_cluster text := '';
  v_backup text;
BEGIN
  BEGIN
    SELECT system_identifier::text INTO v_cluster FROM pg_control_system();
  EXCEPTION WHEN insufficient_privilege THEN
    NULL; -- the rest must do
  END;
  BEGIN
    v_backup := md5(pg_read_binary_file('backup_label.old', 0, 8192, true));
  EXCEPTION WHEN insufficient_privilege THEN
    NULL; -- only a superuser may read it
  END;
  RETURN (SELECT concat_ws(' ', v_cluster, d.oid, 'dibs.history'::regclass::oid,
      left(pg_walfile_name(pg_current_wal_lsn()), 8), coalesce(v_backup, '-'))
    FROM pg_database d WHERE d.datname = current_database());
END
$$;

-- Whether the newest events are those of other tables, as after a restore from a dump: the numbers of
-- their transactions say nothing here.
CREATE OR REPLACE FUNCTION dibs.is_foreign() RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  h dibs.history;
BEGIN
  IF pg_is_in_recovery() THEN
    RETURN false;
  END IF;
  SELECT * INTO h FROM dibs.history x ORDER BY x.line DESC LIMIT 1;
  RETURN (h.server = dibs.server() OR regexp_replace(h.name, ' [^ ]* [^ ]*$', '')
    = regexp_replace(dibs.lineage(), ' [^ ]* [^ ]*$', '')) IS NOT TRUE;
END
$$;

-- Begin another history: every fence from now on is above those of a past that may be lost, and of
-- other servers that went on from the same past. No counter knows of those, so the time is the fence;
-- where the clock is behind, chance keeps two servers apart. A claim counts its lease from now on,
-- because this server's clock is not the one of its beats. Call it by hand where a server goes back
-- unseen: a snapshot of its disk, or rows restored into these tables, bring back all that is noted.
CREATE OR REPLACE FUNCTION dibs.turn() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  v_moment bigint := dibs.clock();
  v_parent bigint;
  v_high bigint;
  v_line bigint;
BEGIN
  PERFORM dibs.durable();
  PERFORM pg_advisory_xact_lock(7305803);
  SELECT max(h.line) INTO v_parent FROM dibs.history h;
  SELECT greatest(v_parent, max(t.fence)) + 16777216 INTO v_high FROM dibs.task t;
  v_line := CASE WHEN v_moment / 1000 > v_high THEN v_moment / 1000
    ELSE v_high + (random() * 16777216)::bigint END;
  INSERT INTO dibs.history VALUES (v_line, coalesce(v_parent, v_line),
    pg_snapshot_xmin(pg_current_snapshot()), dibs.lineage(), dibs.server());
  UPDATE dibs.claim c SET beat = v_moment, doubted = 0;
  RETURN v_line;
END
$$;

-- The line of the present history, before a change: the next fence is above it.
CREATE OR REPLACE FUNCTION dibs.floor() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  h dibs.history;
  v_server text := dibs.server();
  v_name text;
BEGIN
  PERFORM dibs.durable();
  SELECT * INTO h FROM dibs.history x ORDER BY x.line DESC LIMIT 1;
  IF h.server = v_server THEN
    RETURN h.line;
  END IF;
  PERFORM pg_advisory_xact_lock(7305803); -- only one of many turns
  SELECT * INTO h FROM dibs.history x ORDER BY x.line DESC LIMIT 1;
  IF h.server = v_server THEN
    RETURN h.line;
  END IF;
  v_name := dibs.lineage();
  IF v_name IN (h.name, regexp_replace(h.name, ' [^ ]*$', ' -')) THEN -- `-`: may not be read, or is gone
    UPDATE dibs.history x SET server = v_server WHERE x.line = h.line;
    RETURN h.line;
  END IF;
  RETURN dibs.turn();
END
$$;

CREATE OR REPLACE FUNCTION dibs.add(
  p_eid text, p_folder text, p_priority smallint, p_not_before bigint, p_payload bytea,
  p_by text, p_act text
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  v_moment bigint := dibs.clock();
  v_state text := CASE WHEN p_folder <> '' THEN 'free' WHEN p_not_before > 0 THEN 'later'
    ELSE 'available' END;
  v_name text := dibs.spell(p_eid, v_state, 0, 0, p_priority, 0, 0, p_not_before, '', p_folder);
  v_n bigint;
  v_line bigint;
BEGIN
  IF (dibs.is_task(p_eid, v_name, v_state, 0, 0, p_priority, 0, 0, p_not_before, '')
      AND octet_length(p_payload) <= 268435456 AND dibs.is_text(p_by, 262144)
      AND dibs.is_text(p_act, 60)) IS NOT TRUE THEN
    PERFORM dibs.refuse('a task');
  END IF;
  v_line := dibs.floor();
  INSERT INTO dibs.task AS t VALUES (
    p_eid, v_name, v_state, 0, 0, p_priority, 0, 0, p_not_before, '', v_moment, 1
  ) ON CONFLICT (eid) DO UPDATE SET
    name = dibs.spell(p_eid, v_state, t.fence + 1, 0, p_priority, 0, 0, p_not_before, '', p_folder),
    state = v_state, fence = t.fence + 1, attempts = 0, priority = p_priority, question = 0,
    answer = 0, not_before = p_not_before, claim = '', since = v_moment, events = t.events + 1
    WHERE t.state = 'gone'
  RETURNING t.name, t.events INTO v_name, v_n;
  IF NOT FOUND THEN
    SELECT e.dst INTO v_name FROM dibs.event e WHERE e.eid = p_eid AND e.act = p_act;
    RETURN v_name; -- NULL unless this call was done before
  END IF;
  INSERT INTO dibs.payload VALUES (p_eid, p_payload);
  INSERT INTO dibs.event (eid, n, line, at, verb, src, dst, by, reason, note, act)
    VALUES (p_eid, v_n, v_line, v_moment, 'add', '', v_name, p_by, '', '', p_act);
  RETURN v_name;
END
$$;

-- Claim exactly `p_src`, or the head of the queue without one. `p_pauses` are the pauses that the
-- caller found not to concern it; NULL for an owner that claims its own again, whom none stops.
-- A pause takes the lock alone, so it waits for every claim that has not looked for it.
CREATE OR REPLACE FUNCTION dibs.take(
  p_src text, p_claim text, p_record bytea, p_ttl double precision, p_process boolean,
  p_verb text, p_by text, p_reason text, p_lock boolean, p_pauses text[], p_again boolean,
  OUT outcome text, OUT taken text
) LANGUAGE plpgsql AS $$
DECLARE
  t dibs.task;
  d dibs.task;
  v_moment bigint;
  v_second bigint;
  v_fence bigint;
  v_state text;
  v_lock text;
  v_paused boolean;
  v_due boolean;
  v_line bigint;
BEGIN
  IF (dibs.is_ttl(p_ttl) AND dibs.is_claim(p_claim) AND octet_length(p_record) <= 16384
      AND octet_length(p_verb) <= 64 AND dibs.is_text(p_verb || p_by || p_reason, 262144))
      IS NOT TRUE THEN
    PERFORM dibs.refuse('a claim');
  END IF;
  IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')
      OR current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM dibs.durable();
  END IF;
  v_lock := pg_advisory_xact_lock(hashtextextended(p_claim, 7305801))::text; -- no statement: fast
  IF p_again THEN
    SELECT x.name INTO taken FROM dibs.task x
      WHERE x.claim = p_claim AND x.state IN ('claimed', 'held');
    IF FOUND THEN
      outcome := 'taken';
      RETURN;
    END IF;
  END IF;
  v_moment := dibs.clock();
  v_second := v_moment / 1000000000;
  IF p_pauses IS NOT NULL THEN
    v_lock := pg_advisory_xact_lock_shared(7305802)::text;
  END IF;
  SELECT
    p_pauses IS NOT NULL AND EXISTS (SELECT FROM dibs.pause p WHERE p.name <> ALL (p_pauses)
      AND (p.locks OR NOT p_lock) AND (p.until IS NULL OR p.until > v_moment)),
    p_src IS NULL AND EXISTS (SELECT FROM dibs.task x WHERE x.state = 'later'
      AND (x.not_before <= v_second OR x.not_before > v_second + 100000)),
    (SELECT h.line FROM (SELECT * FROM dibs.history x ORDER BY x.line DESC LIMIT 1) h
      WHERE h.server = dibs.server())
    INTO v_paused, v_due, v_line;
  IF v_paused THEN
    outcome := 'paused';
    RETURN;
  END IF;
  IF v_line IS NULL THEN
    v_line := dibs.floor();
  END IF;
  IF p_src IS NULL AND NOT v_due THEN -- nearly always: one statement
    WITH head AS MATERIALIZED (
      SELECT x.eid, x.name, greatest(x.fence, v_line) + 1 AS fence FROM dibs.task x
        WHERE x.state = 'available' AND x.fence < 999999999999999999
          AND dibs.is_task(x.eid, x.name, x.state, x.fence, x.attempts, x.priority, x.question,
            x.answer, x.not_before, x.claim)
        ORDER BY x.priority DESC, x.eid LIMIT 1 FOR UPDATE SKIP LOCKED
    ), changed AS (
      UPDATE dibs.task x SET name = x.eid || '.'
          || dibs.stamp(h.fence, x.attempts, x.priority, x.question, x.answer)
          || '.' || p_claim || '.claimed', state = 'claimed', fence = h.fence, claim = p_claim,
          since = v_moment, events = x.events + 1
        FROM head h WHERE x.eid = h.eid RETURNING x.eid, x.name, x.events, h.name AS old
    ), held AS (
      INSERT INTO dibs.claim (eid, name, beat, ttl, since, process, record)
        SELECT c.eid, c.name, v_moment, p_ttl, v_moment, p_process, p_record FROM changed c
    ), logged AS (
      INSERT INTO dibs.event (eid, n, line, at, verb, src, dst, by, reason, note, act)
        SELECT c.eid, c.events, v_line, v_moment, p_verb, c.old, c.name, p_by, p_reason, '', p_claim
          FROM changed c
    )
    SELECT c.name INTO taken FROM changed c;
    outcome := CASE WHEN taken IS NULL THEN 'none' ELSE 'taken' END;
    RETURN;
  END IF;
  IF p_src IS NOT NULL THEN
    SELECT * INTO t FROM dibs.task x WHERE x.name = p_src FOR UPDATE;
  ELSE
    SELECT * INTO t FROM dibs.task x WHERE x.state = 'available' AND x.fence < 999999999999999999
        AND dibs.is_task(x.eid, x.name, x.state, x.fence, x.attempts, x.priority, x.question,
          x.answer, x.not_before, x.claim)
      ORDER BY x.priority DESC, x.eid LIMIT 1 FOR UPDATE SKIP LOCKED;
    SELECT * INTO d FROM dibs.task x WHERE x.state = 'later' AND (x.not_before <= v_second
        OR (x.attempts > 0 AND x.not_before > v_second + 100000))
        AND x.fence < 999999999999999999
        AND dibs.is_task(x.eid, x.name, x.state, x.fence, x.attempts, x.priority, x.question,
          x.answer, x.not_before, x.claim)
      ORDER BY x.priority DESC, x.eid LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF d.eid IS NOT NULL AND (t.eid IS NULL OR d.priority > t.priority
        OR (d.priority = t.priority AND d.eid < t.eid)) THEN
      t := d;
    END IF;
  END IF;
  IF t.eid IS NULL THEN
    outcome := 'none';
    RETURN;
  END IF;
  v_fence := greatest(t.fence, v_line) + 1;
  v_state := CASE WHEN t.state IN ('free', 'held') THEN 'held' ELSE 'claimed' END;
  taken := t.eid || '.' || dibs.stamp(v_fence, t.attempts, t.priority, t.question, t.answer)
    || '.' || p_claim || '.' || v_state;
  UPDATE dibs.task x SET name = taken, state = v_state, fence = v_fence, claim = p_claim,
    not_before = 0, since = v_moment, events = x.events + 1 WHERE x.eid = t.eid;
  INSERT INTO dibs.claim AS c VALUES (
    t.eid, taken, v_moment, p_ttl, v_moment, p_process, p_record
  ) ON CONFLICT (eid) DO UPDATE SET name = taken, beat = v_moment, ttl = p_ttl, since = v_moment,
    process = p_process, record = p_record, note = '', noted = 0, doubted = 0;
  INSERT INTO dibs.event (eid, n, line, at, verb, src, dst, by, reason, note, act)
    VALUES (t.eid, t.events + 1, v_line, v_moment, p_verb, t.name, taken, p_by, p_reason, '', p_claim);
  outcome := 'taken';
END
$$;

-- The same for a name that other servers make for the same request. So what a repeated step finds may
-- be the claim of another server. It is given away a second time now: with a beat no one undoes it.
CREATE OR REPLACE FUNCTION dibs.take_named(
  p_src text, p_claim text, p_record bytea, p_ttl double precision, p_process boolean,
  p_verb text, p_by text, p_reason text, p_lock boolean, p_pauses text[], p_again boolean,
  OUT outcome text, OUT taken text
) LANGUAGE plpgsql AS $$
DECLARE
  v_eid text;
BEGIN
  PERFORM dibs.durable();
  IF p_again THEN
    PERFORM pg_advisory_xact_lock(hashtextextended(p_claim, 7305801));
    SELECT x.eid, x.name INTO v_eid, taken FROM dibs.task x
      WHERE x.claim = p_claim AND x.state IN ('claimed', 'held') FOR UPDATE; -- an undo has ended
    IF FOUND THEN
      UPDATE dibs.claim c SET beat = greatest(dibs.clock(), c.beat + 1)
        WHERE c.eid = v_eid AND c.name = taken;
      outcome := 'taken';
      RETURN;
    END IF;
  END IF;
  SELECT f.outcome, f.taken INTO outcome, taken FROM dibs.take(p_src, p_claim, p_record, p_ttl,
    p_process, p_verb, p_by, p_reason, p_lock, p_pauses, false) f;
END
$$;

-- Claim the first of the queue under as many names of claims as are given; the names, with a space
-- between, in the order of the queue. With later tasks that are due it claims one after another.
CREATE OR REPLACE FUNCTION dibs.take_many(
  p_claims text[], p_record bytea, p_ttl double precision, p_process boolean,
  p_verb text, p_by text, p_reason text, p_lock boolean, p_pauses text[], p_again boolean,
  OUT outcome text, OUT taken text
) LANGUAGE plpgsql AS $$
DECLARE
  v_moment bigint;
  v_second bigint;
  v_line bigint;
  v_one record;
  v_claim text;
  v_lock text;
  v_paused boolean;
  v_due boolean;
BEGIN
  IF (dibs.is_ttl(p_ttl) AND cardinality(p_claims) BETWEEN 1 AND 1000
      AND (SELECT bool_and(dibs.is_claim(c)) FROM unnest(p_claims) c)
      AND octet_length(p_record) <= 16384 AND dibs.is_text(p_verb, 64)
      AND dibs.is_text(p_by, 262144) AND dibs.is_text(p_reason, 262144)) IS NOT TRUE THEN
    PERFORM dibs.refuse('a claim');
  END IF;
  IF current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')
      OR current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM dibs.durable();
  END IF;
  v_lock := pg_advisory_xact_lock(hashtextextended(p_claims[1], 7305801))::text;
  IF p_again THEN
    SELECT string_agg(x.name, ' ' ORDER BY array_position(p_claims, x.claim)) INTO taken
      FROM dibs.task x WHERE x.claim = ANY (p_claims) AND x.state IN ('claimed', 'held');
    IF taken IS NOT NULL THEN
      outcome := 'taken';
      RETURN;
    END IF;
  END IF;
  v_moment := dibs.clock();
  v_second := v_moment / 1000000000;
  v_lock := pg_advisory_xact_lock_shared(7305802)::text;
  SELECT
    EXISTS (SELECT FROM dibs.pause p WHERE p.name <> ALL (p_pauses)
      AND (p.locks OR NOT p_lock) AND (p.until IS NULL OR p.until > v_moment)),
    EXISTS (SELECT FROM dibs.task x WHERE x.state = 'later'
      AND (x.not_before <= v_second OR x.not_before > v_second + 100000))
    INTO v_paused, v_due;
  IF v_paused THEN
    outcome := 'paused';
    RETURN;
  END IF;
  IF v_due THEN
    FOREACH v_claim IN ARRAY p_claims LOOP
      SELECT * INTO v_one FROM dibs.take(NULL, v_claim, p_record, p_ttl, p_process, p_verb, p_by,
        p_reason, p_lock, p_pauses, false);
      EXIT WHEN v_one.outcome <> 'taken';
      taken := concat_ws(' ', taken, v_one.taken);
    END LOOP;
    outcome := CASE WHEN taken IS NULL THEN v_one.outcome ELSE 'taken' END;
    RETURN;
  END IF;
  v_line := dibs.floor();
  WITH head AS MATERIALIZED (
    SELECT x.* FROM dibs.task x WHERE x.state = 'available' AND x.fence < 999999999999999999
        AND dibs.is_task(x.eid, x.name, x.state, x.fence, x.attempts, x.priority, x.question,
          x.answer, x.not_before, x.claim)
      ORDER BY x.priority DESC, x.eid LIMIT cardinality(p_claims) FOR UPDATE SKIP LOCKED
  ), numbered AS MATERIALIZED (
    SELECT h.*, row_number() OVER (ORDER BY h.priority DESC, h.eid) AS place,
      greatest(h.fence, v_line) + 1 AS new_fence FROM head h
  ), named AS MATERIALIZED (
    SELECT n.*, p_claims[n.place] AS new_claim, n.eid || '.'
      || dibs.stamp(n.new_fence, n.attempts, n.priority, n.question, n.answer)
      || '.' || p_claims[n.place] || '.claimed' AS new_name FROM numbered n
  ), changed AS (
    UPDATE dibs.task x SET name = n.new_name, state = 'claimed', fence = n.new_fence,
      claim = n.new_claim, not_before = 0, since = v_moment, events = x.events + 1
      FROM named n WHERE x.eid = n.eid
  ), held AS (
    INSERT INTO dibs.claim (eid, name, beat, ttl, since, process, record)
      SELECT n.eid, n.new_name, v_moment, p_ttl, v_moment, p_process, p_record FROM named n
  ), logged AS (
    INSERT INTO dibs.event (eid, n, line, at, verb, src, dst, by, reason, note, act)
      SELECT n.eid, n.events + 1, v_line, v_moment, p_verb, n.name, n.new_name, p_by, p_reason, '',
        n.new_claim FROM named n
  )
  SELECT string_agg(n.new_name, ' ' ORDER BY n.place) INTO taken FROM named n;
  outcome := CASE WHEN taken IS NULL THEN 'none' ELSE 'taken' END;
END
$$;

-- Make the exact name `p_src` into `p_dst`, whose fields the caller gives beside it. With `p_beat`
-- only if the claim was not beaten since. A question or an answer comes with its fence and number.
CREATE OR REPLACE FUNCTION dibs.move(
  p_eid text, p_src text, p_dst text, p_state text, p_attempts integer, p_priority smallint,
  p_question bigint, p_answer integer, p_not_before bigint, p_claim text,
  p_verb text, p_by text, p_reason text, p_act text, p_beat bigint, p_keep boolean,
  p_result bytea, p_text bytea, p_asked bigint, p_number integer
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  t dibs.task;
  v_moment bigint;
  v_beat bigint;
  v_note text := '';
  v_line bigint;
BEGIN
  IF (octet_length(p_verb) <= 64 AND octet_length(p_act) <= 60
      AND dibs.is_text(p_verb || p_by || p_reason || p_act, 262144)
      AND coalesce(octet_length(p_result) <= 65537, true)
      AND coalesce(octet_length(p_text) <= 65537, true)) IS NOT TRUE THEN
    PERFORM dibs.refuse('a step');
  END IF;
  v_line := dibs.floor();
  SELECT * INTO t FROM dibs.task x WHERE x.name = p_src FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM 1 FROM dibs.event e WHERE e.eid = p_eid AND e.act = p_act;
    RETURN CASE WHEN FOUND THEN 'moved' ELSE 'gone' END;
  END IF;
  v_moment := dibs.clock();
  IF t.state IN ('claimed', 'held') THEN
    SELECT c.beat, c.note INTO v_beat, v_note FROM dibs.claim c WHERE c.eid = t.eid FOR UPDATE;
    IF p_beat IS NOT NULL AND p_beat <> v_beat THEN
      RETURN 'beaten';
    END IF;
    DELETE FROM dibs.claim c WHERE c.eid = t.eid;
  END IF;
  UPDATE dibs.task x SET name = p_dst, state = p_state, attempts = p_attempts,
    priority = p_priority, question = p_question, answer = p_answer, not_before = p_not_before,
    claim = p_claim, since = CASE WHEN p_keep THEN x.since ELSE v_moment END,
    events = x.events + 1 WHERE x.eid = t.eid;
  IF p_result IS NOT NULL THEN
    INSERT INTO dibs.result VALUES (
      p_eid || substr(p_dst, strpos(p_dst, '.')), p_eid, t.fence, v_moment, p_result
    ) ON CONFLICT (stem) DO UPDATE SET data = p_result, at = v_moment;
  END IF;
  IF p_text IS NOT NULL THEN
    INSERT INTO dibs.question VALUES (p_eid, p_asked, p_number, p_text)
      ON CONFLICT (eid, fence, answer) DO UPDATE SET data = p_text;
  END IF;
  INSERT INTO dibs.event (eid, n, line, at, verb, src, dst, by, reason, note, act)
    VALUES (t.eid, t.events + 1, v_line, v_moment, p_verb, p_src, p_dst, p_by, p_reason,
      coalesce(v_note, ''), p_act);
  RETURN 'moved';
END
$$;

-- A lost heartbeat only shortens a lease, so it need not survive a crash.
CREATE OR REPLACE FUNCTION dibs.beat(
  p_eid text, p_name text, p_ttl double precision, p_record bytea, p_note text
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_moment bigint := dibs.clock();
BEGIN
  IF (coalesce(dibs.is_ttl(p_ttl), true) AND coalesce(octet_length(p_record) <= 16384, true)
      AND coalesce(dibs.is_text(p_note, 2400), true)) IS NOT TRUE THEN
    PERFORM dibs.refuse('a heartbeat');
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE dibs.claim c SET beat = v_moment, doubted = 0, ttl = coalesce(p_ttl, c.ttl),
    record = coalesce(p_record, c.record), note = coalesce(p_note, c.note),
    noted = CASE WHEN p_note IS NULL THEN c.noted WHEN p_note = '' THEN 0 ELSE v_moment END
    WHERE c.eid = p_eid AND c.name = p_name;
  RETURN FOUND;
END
$$;

-- Note that these leases are over by a clock that may have been set: they count again from now on. A
-- beat ends a doubt; a doubt that is later than now, of a clock that was ahead, is none.
CREATE OR REPLACE FUNCTION dibs.doubt(p_names text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_moment bigint;
BEGIN
  PERFORM dibs.floor();
  v_moment := dibs.clock();
  UPDATE dibs.claim c SET doubted = v_moment WHERE c.name = ANY (p_names)
    AND (c.doubted <= c.beat OR c.doubted > v_moment) AND c.beat + c.ttl * 1e9 < v_moment;
END
$$;

CREATE OR REPLACE FUNCTION dibs.note(p_eid text, p_name text, p_note text)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  IF dibs.is_text(p_note, 2400) IS NOT TRUE THEN
    PERFORM dibs.refuse('a note');
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  UPDATE dibs.claim c SET note = p_note,
    noted = CASE WHEN p_note = '' THEN 0 ELSE dibs.clock() END
    WHERE c.eid = p_eid AND c.name = p_name;
  RETURN FOUND;
END
$$;

-- An event that moves nothing. The id '' is that of the board itself.
CREATE OR REPLACE FUNCTION dibs.write(
  p_eid text, p_verb text, p_src text, p_dst text, p_by text, p_reason text, p_act text
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  v_n bigint;
  v_line bigint;
BEGIN
  IF (dibs.is_text(p_verb, 262144) AND dibs.is_text(p_src, 262144) AND dibs.is_text(p_dst, 262144)
      AND dibs.is_text(p_by, 262144) AND dibs.is_text(p_reason, 262144)
      AND dibs.is_text(p_act, 60)) IS NOT TRUE THEN
    PERFORM dibs.refuse('a line of the log');
  END IF;
  v_line := dibs.floor();
  SELECT x.events INTO v_n FROM dibs.task x WHERE x.eid = p_eid FOR UPDATE;
  PERFORM 1 FROM dibs.event e WHERE e.eid = p_eid AND e.act = p_act AND p_act <> '';
  IF v_n IS NULL OR FOUND THEN
    RETURN false;
  END IF;
  UPDATE dibs.task x SET events = v_n + 1 WHERE x.eid = p_eid;
  INSERT INTO dibs.event (eid, n, line, at, verb, src, dst, by, reason, note, act)
    VALUES (p_eid, v_n + 1, v_line, dibs.clock(), p_verb, p_src, p_dst, p_by, p_reason, '', p_act);
  RETURN true;
END
$$;

CREATE OR REPLACE FUNCTION dibs.pause(
  p_name text, p_until bigint, p_locks boolean, p_data bytea,
  p_verb text, p_src text, p_dst text, p_by text, p_reason text, p_act text
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM dibs.floor(); -- before any lock
  PERFORM pg_advisory_xact_lock(7305802);
  INSERT INTO dibs.pause VALUES (p_name, p_until, p_locks, p_data) ON CONFLICT DO NOTHING;
  PERFORM dibs.write('', p_verb, p_src, p_dst, p_by, p_reason, p_act);
END
$$;

CREATE OR REPLACE FUNCTION dibs.unpause(
  p_name text, p_verb text, p_src text, p_dst text, p_by text, p_reason text, p_act text
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM dibs.floor(); -- before any lock
  DELETE FROM dibs.pause p WHERE p.name = p_name;
  IF NOT FOUND THEN
    PERFORM 1 FROM dibs.event e WHERE e.eid = '' AND e.act = p_act;
    RETURN FOUND;
  END IF;
  RETURN dibs.write('', p_verb, p_src, p_dst, p_by, p_reason, p_act);
END
$$;

-- What the work on an id left, up to a fence.
CREATE OR REPLACE FUNCTION dibs.sweep(p_eid text, p_fence bigint) RETURNS void LANGUAGE sql AS $$
  DELETE FROM dibs.question WHERE eid = p_eid AND fence <= p_fence;
  DELETE FROM dibs.result WHERE eid = p_eid AND fence <= p_fence;
  DELETE FROM dibs.output WHERE eid = p_eid AND fence <= p_fence
$$;

CREATE OR REPLACE FUNCTION dibs.purge(
  p_age bigint, p_most integer, p_by text, p_act text, p_again boolean
) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  t dibs.task;
  v_moment bigint := dibs.clock();
  v_count integer := 0;
  v_line bigint;
BEGIN
  v_line := dibs.floor();
  IF p_again THEN
    SELECT count(*) INTO v_count FROM dibs.event e
      WHERE e.at > v_moment - 3600000000000 AND e.verb = 'purge' AND e.act = p_act;
    IF v_count > 0 THEN
      RETURN v_count;
    END IF;
  END IF;
  FOR t IN SELECT * FROM dibs.task x WHERE x.state = 'done' AND x.since <= v_moment - p_age
    ORDER BY x.eid LIMIT p_most FOR UPDATE
  LOOP
    UPDATE dibs.task x SET name = NULL, state = 'past', claim = '', events = x.events + 1
      WHERE x.eid = t.eid;
    DELETE FROM dibs.payload p WHERE p.eid = t.eid;
    PERFORM dibs.sweep(t.eid, t.fence);
    INSERT INTO dibs.event (eid, n, line, at, verb, src, dst, by, reason, note, act)
      VALUES (t.eid, t.events + 1, v_line, v_moment, 'purge', t.name, '', p_by, '', '', p_act);
    v_count := v_count + 1;
  END LOOP;
  RETURN v_count;
END
$$;

CREATE OR REPLACE FUNCTION dibs.forget(p_eid text, p_by text, p_act text)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  t dibs.task;
BEGIN
  PERFORM dibs.floor(); -- before any lock
  SELECT * INTO t FROM dibs.task x WHERE x.eid = p_eid FOR UPDATE;
  PERFORM 1 FROM dibs.event e WHERE e.eid = p_eid AND e.act = p_act;
  IF FOUND THEN
    RETURN 'done';
  ELSIF t.eid IS NULL OR t.state = 'gone' THEN
    RETURN 'unknown';
  ELSIF t.state <> 'past' THEN
    RETURN 'there';
  END IF;
  UPDATE dibs.task x SET state = 'gone' WHERE x.eid = p_eid;
  PERFORM dibs.sweep(p_eid, t.fence);
  PERFORM dibs.write(p_eid, 'forget', '', '', p_by, '', p_act);
  RETURN 'done';
END
$$;

-- Keep a part of an output. What begins before `p_from` and is not its beginning is dropped.
CREATE OR REPLACE FUNCTION dibs.keep(
  p_stem text, p_eid text, p_fence bigint, p_begins bigint, p_tail boolean, p_data bytea,
  p_from bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF (dibs.is_id(p_eid) AND dibs.is_text(p_stem, 255) AND p_begins >= 0) IS NOT TRUE THEN
    PERFORM dibs.refuse('an output');
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  INSERT INTO dibs.output VALUES (p_stem, p_begins, p_tail, p_eid, p_fence, dibs.clock(), p_data)
    ON CONFLICT (stem, begins) DO UPDATE SET data = p_data, at = dibs.clock();
  IF p_tail THEN
    DELETE FROM dibs.output o WHERE o.stem = p_stem AND o.tail AND o.begins < p_from;
  END IF;
END
$$;

-- Remove what is over: ended pauses, the signs of workers that wait no more, and the outputs and
-- results of earlier claims.
CREATE OR REPLACE FUNCTION dibs.tidy(p_waiters bigint, p_outputs bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  v_moment bigint := dibs.clock();
BEGIN
  DELETE FROM dibs.pause p WHERE p.until <= v_moment;
  DELETE FROM dibs.waiter w WHERE abs(w.touched - v_moment) > p_waiters;
  DELETE FROM dibs.output o USING dibs.task t WHERE t.eid = o.eid AND o.at < v_moment - p_outputs
    AND strpos(coalesce(t.name, ''), o.stem) = 0;
  DELETE FROM dibs.result r USING dibs.task t WHERE t.eid = r.eid AND r.at < v_moment - p_outputs
    AND strpos(coalesce(t.name, ''), r.stem) = 0;
END
$$;

-- Show that a worker waits, or with NULL that it does so no more.
CREATE OR REPLACE FUNCTION dibs.wait(p_name text, p_data bytea) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF (dibs.is_claim(p_name) AND coalesce(octet_length(p_data) <= 8192, true)) IS NOT TRUE THEN
    PERFORM dibs.refuse('a worker that waits');
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  IF p_data IS NULL THEN
    DELETE FROM dibs.waiter w WHERE w.name = p_name;
  ELSE
    INSERT INTO dibs.waiter VALUES (p_name, dibs.clock(), p_data)
      ON CONFLICT (name) DO UPDATE SET touched = dibs.clock(), data = p_data;
  END IF;
END
$$;

-- The same limits for every row that is written, also by hand. Rows that are there already stay as
-- they are: `dibs check` names them.

ALTER TABLE dibs.task DROP CONSTRAINT IF EXISTS limits, ADD CONSTRAINT limits CHECK (
  dibs.is_task(eid, name, state, fence, attempts, priority, question, answer, not_before, claim)
) NOT VALID;
ALTER TABLE dibs.payload DROP CONSTRAINT IF EXISTS limits, ADD CONSTRAINT limits CHECK (
  dibs.is_id(eid) AND octet_length(data) <= 268435456
) NOT VALID;
ALTER TABLE dibs.claim DROP CONSTRAINT IF EXISTS limits, ADD CONSTRAINT limits CHECK (
  dibs.is_id(eid) AND dibs.is_ttl(ttl) AND beat >= 0 AND since >= 0 AND noted >= 0
    AND octet_length(record) <= 16384 AND octet_length(name) <= 255 AND octet_length(note) <= 2400
    AND dibs.is_text(name || note, 2655)
) NOT VALID;
ALTER TABLE dibs.question DROP CONSTRAINT IF EXISTS limits, ADD CONSTRAINT limits CHECK (
  dibs.is_id(eid) AND fence BETWEEN 0 AND 999999999999999999 AND answer BETWEEN 0 AND 999999999
    AND octet_length(data) <= 65537
) NOT VALID;
ALTER TABLE dibs.result DROP CONSTRAINT IF EXISTS limits, ADD CONSTRAINT limits CHECK (
  dibs.is_id(eid) AND dibs.is_text(stem, 255) AND octet_length(data) <= 65537
) NOT VALID;
ALTER TABLE dibs.output DROP CONSTRAINT IF EXISTS limits, ADD CONSTRAINT limits CHECK (
  dibs.is_id(eid) AND dibs.is_text(stem, 255) AND begins >= 0
) NOT VALID;
ALTER TABLE dibs.event DROP CONSTRAINT IF EXISTS limits, ADD CONSTRAINT limits CHECK (
  (eid = '' OR dibs.is_id(eid)) AND n > 0 AND octet_length(act) <= 60
    AND dibs.is_text(verb || src || dst || by || reason || note || act, 524288)
) NOT VALID;
ALTER TABLE dibs.pause DROP CONSTRAINT IF EXISTS limits, ADD CONSTRAINT limits CHECK (
  name COLLATE "C" ~ '^[0-9A-F]{10}$' AND octet_length(data) <= 8192
) NOT VALID;
ALTER TABLE dibs.waiter DROP CONSTRAINT IF EXISTS limits, ADD CONSTRAINT limits CHECK (
  dibs.is_claim(name) AND octet_length(data) <= 8192
) NOT VALID;
