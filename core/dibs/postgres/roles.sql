-- Roles with as few rights as they need, named after the database, because roles are those of the
-- cluster: DATABASE_reader may look, DATABASE_worker may also add tasks and work on them,
-- DATABASE_operator may do everything. Nobody logs in as one of them: grant them to logins.
-- It can be run again.

DO $do$
DECLARE
  v_base text := current_database();
  v_role text;
  v_function regprocedure;
BEGIN
  FOREACH v_role IN ARRAY ARRAY['_reader', '_worker', '_operator'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = v_base || v_role) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', v_base || v_role);
    END IF;
  END LOOP;
  EXECUTE format('GRANT %I TO %I', v_base || '_reader', v_base || '_worker');
  EXECUTE format('GRANT %I TO %I', v_base || '_worker', v_base || '_operator');
  EXECUTE format('GRANT %I TO %I', v_base || '_operator', session_user);
  EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', v_base, v_base || '_reader');
  EXECUTE format('GRANT USAGE ON SCHEMA dibs TO %I', v_base || '_reader');
  EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA dibs TO %I', v_base || '_reader');
  REVOKE ALL ON ALL FUNCTIONS IN SCHEMA dibs FROM PUBLIC;
  FOR v_function IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'dibs'::regnamespace
    AND p.proname IN ('clock', 'server', 'lineage', 'is_foreign', -- what readers ask; a check looks at the limits
      'is_id', 'is_claim', 'is_ttl', 'is_text', 'is_task', 'spell', 'stamp')
  LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', v_function, v_base || '_reader');
  END LOOP;
  -- Who calls these has the rights of the owner of the tables, and chooses no search_path.
  FOR v_function IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'dibs'::regnamespace
    AND p.proname IN ('add', 'take', 'take_named', 'take_many', 'move', 'beat', 'doubt', 'note', 'write', 'keep', 'tidy',
      'wait', 'pause', 'unpause', 'purge', 'forget', 'turn')
  LOOP
    EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path = dibs, pg_temp', v_function);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', v_function, v_base || (
      SELECT CASE WHEN p.proname IN ('pause', 'unpause', 'purge', 'forget', 'turn')
        THEN '_operator' ELSE '_worker' END FROM pg_proc p WHERE p.oid = v_function));
  END LOOP;
END
$do$;

CREATE OR REPLACE FUNCTION dibs.is_operator() RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT pg_has_role(session_user, current_database() || '_operator', 'MEMBER')
$$;

-- What a worker may make of a task. The names that are not its own claims are no secret, so who
-- calls the functions by hand could otherwise park a task as a failure, or claim a done one.
CREATE OR REPLACE FUNCTION dibs.guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_moment bigint;
  v_name text;
BEGIN
  IF dibs.is_operator() OR (NEW.name, NEW.state, NEW.fence, NEW.attempts, NEW.priority,
      NEW.question, NEW.answer, NEW.not_before, NEW.claim, NEW.since) IS NOT DISTINCT FROM
      (OLD.name, OLD.state, OLD.fence, OLD.attempts, OLD.priority,
      OLD.question, OLD.answer, OLD.not_before, OLD.claim, OLD.since) THEN
    RETURN NEW;
  END IF;
  IF OLD.name IS NULL AND OLD.state = 'gone' THEN
    RETURN NEW; -- an add
  END IF;
  v_moment := dibs.clock();
  v_name := dibs.spell(NEW.eid, NEW.state, NEW.fence, NEW.attempts, NEW.priority, NEW.question,
    NEW.answer, NEW.not_before, NEW.claim, regexp_replace(NEW.name, '/[^/]*$', ''));
  IF NEW.eid = OLD.eid AND NEW.priority = OLD.priority AND NEW.question = OLD.question
    AND NEW.answer = OLD.answer AND NEW.name = v_name AND (
      (NEW.state IN ('claimed', 'held') AND OLD.state IN ('claimed', 'held')
        AND NEW.attempts = OLD.attempts AND NEW.fence > OLD.fence)
      OR (NEW.state IN ('claimed', 'held') AND NEW.attempts = OLD.attempts
        AND NEW.fence > OLD.fence AND NOT dibs.is_paused(v_moment, NEW.state = 'held')
        AND (OLD.state IN ('available', 'free') OR (OLD.state = 'later'
          AND (OLD.not_before <= v_moment / 1000000000 OR OLD.attempts > 0))))
      OR (OLD.state IN ('claimed', 'held') AND NEW.fence = OLD.fence AND (
        (NEW.state IN ('done', 'asked') AND NEW.claim = OLD.claim
          AND NEW.attempts = OLD.attempts)
        OR (NEW.state = 'failed' AND NEW.claim = OLD.claim AND NEW.attempts = OLD.attempts + 1)
        OR (NEW.state IN ('available', 'later', 'free')
          AND NEW.attempts BETWEEN OLD.attempts AND OLD.attempts + 1)))
      OR (OLD.state = 'later' AND NEW.state = 'available' AND NEW.fence = OLD.fence
        AND NEW.attempts = OLD.attempts
        AND (OLD.not_before <= v_moment / 1000000000 OR OLD.attempts > 0))) THEN
    RETURN NEW;
  END IF;
  RAISE insufficient_privilege USING MESSAGE = 'a worker may not make ' || coalesce(OLD.name, OLD.eid)
    || ' into ' || coalesce(NEW.name, NEW.state);
END
$$;

-- Whether a pause of every host is in force. Those of some hosts are between friends: a worker says
-- itself on which host it is.
CREATE OR REPLACE FUNCTION dibs.is_paused(p_moment bigint, p_lock boolean) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM dibs.pause p WHERE (p.locks OR NOT p_lock)
    AND (p.until IS NULL OR p.until > p_moment)
    AND coalesce(convert_from(p.data, 'UTF8')::json ->> 'host', '') = '')
$$;

CREATE OR REPLACE FUNCTION dibs.guard_log() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.verb IN ('force-release', 'requeue', 'park', 'answer', 'prioritize', 'undo', 'pause',
      'unpause', 'purge', 'forget') AND NOT dibs.is_operator() THEN
    RAISE insufficient_privilege USING MESSAGE = 'a worker may not ' || NEW.verb;
  END IF;
  RETURN NEW;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA dibs FROM PUBLIC;
DROP TRIGGER IF EXISTS guard ON dibs.task;
DROP TRIGGER IF EXISTS guard ON dibs.event;
CREATE TRIGGER guard BEFORE UPDATE ON dibs.task FOR EACH ROW EXECUTE FUNCTION dibs.guard();
CREATE TRIGGER guard BEFORE INSERT ON dibs.event FOR EACH ROW EXECUTE FUNCTION dibs.guard_log();
