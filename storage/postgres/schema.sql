-- Layout 1. Revisions number the writes of keys, across all keys.
CREATE SEQUENCE oneclaw_revision;

-- A key that was deleted stays for a while with the revision of its deletion and without a
-- value, so that every watcher learns of it. tx is the transaction of the newest version. A
-- watcher finds new versions by it, because revisions do not become visible in their order.
CREATE TABLE oneclaw_kv (
	key      bytea  PRIMARY KEY,
	value    bytea,
	revision bigint NOT NULL,
	tx       xid8   NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX oneclaw_kv_tx ON oneclaw_kv (tx);
CREATE INDEX oneclaw_kv_deleted ON oneclaw_kv (tx) WHERE value IS NULL;

-- The id distinguishes logs with the same name before and after a drop.
CREATE TABLE oneclaw_logs (
	id   bigint GENERATED ALWAYS AS IDENTITY,
	name bytea  PRIMARY KEY,
	last bigint NOT NULL
) WITH (fillfactor = 80);

CREATE TABLE oneclaw_records (
	log      bigint NOT NULL,
	position bigint NOT NULL,
	label    bytea  NOT NULL,
	data     bytea  NOT NULL,
	PRIMARY KEY (log, position)
);
CREATE INDEX oneclaw_records_label ON oneclaw_records (log, label, position) WHERE label <> '';

-- The rows of keys that were deleted before the transaction swept may be gone.
CREATE TABLE oneclaw_meta (
	one     boolean PRIMARY KEY DEFAULT true CHECK (one),
	version int  NOT NULL,
	swept   xid8 NOT NULL DEFAULT '0'
);
INSERT INTO oneclaw_meta (version) VALUES (1);

-- oneclaw_write applies several writes in one step: all operations of a write, or none if one
-- of them conflicts. It returns for each write its revision, 0 if no key has changed, or -1
-- for a conflict.
--
-- Kinds are 1 put, 2 delete, 3 check, 4 append and 5 drop. ends has the number of the last
-- operation of each write. expected has a revision (-1: any) or the position of the last
-- record. counts has the number of records of each append; labels and records have those of
-- all appends. Locks are in order, so that two calls never wait for each other. They are held
-- until the changes are visible, and revisions and positions are read only under them.
CREATE FUNCTION oneclaw_write(
	locks bigint[], shared boolean[], ends int[],
	kinds int[], names bytea[], expected bigint[], vals bytea[],
	counts int[], labels bytea[], records bytea[]
) RETURNS bigint[] LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
	results  bigint[] := '{}';
	start    int := 1;  -- the first operation of the write
	taken    int := 0;  -- the number of records in the appends before
	present  bigint;
	conflict boolean;
	rev      bigint;
	fresh    bigint;
	log_id   bigint;
BEGIN
	IF current_setting('transaction_isolation') <> 'read committed' THEN
		RAISE EXCEPTION 'oneclaw_write needs the isolation level read committed';
	END IF;
	PERFORM CASE WHEN l.shared THEN pg_advisory_xact_lock_shared(l.name) ELSE pg_advisory_xact_lock(l.name) END
		FROM unnest(locks, shared) AS l(name, shared);
	FOR w IN 1 .. cardinality(ends) LOOP
		conflict := false;
		FOR i IN start .. ends[w] LOOP
			IF expected[i] < 0 THEN
				CONTINUE;
			END IF;
			IF kinds[i] = 4 THEN
				SELECT last INTO present FROM oneclaw_logs WHERE name = names[i];
			ELSE
				SELECT revision INTO present FROM oneclaw_kv WHERE key = names[i] AND value IS NOT NULL;
			END IF;
			conflict := conflict OR expected[i] <> coalesce(present, 0);
		END LOOP;
		rev := CASE WHEN conflict THEN -1 ELSE 0 END;
		fresh := NULL;
		FOR i IN start .. ends[w] LOOP
			IF conflict OR kinds[i] = 3 THEN
				NULL;
			ELSIF kinds[i] = 1 THEN
				fresh := coalesce(fresh, nextval('oneclaw_revision'));
				rev := fresh;
				INSERT INTO oneclaw_kv (key, value, revision) VALUES (names[i], vals[i], rev)
					ON CONFLICT (key) DO UPDATE SET value = excluded.value, revision = excluded.revision, tx = excluded.tx;
			ELSIF kinds[i] = 2 THEN
				fresh := coalesce(fresh, nextval('oneclaw_revision'));
				UPDATE oneclaw_kv SET value = NULL, revision = fresh, tx = pg_current_xact_id()
					WHERE key = names[i] AND value IS NOT NULL;
				IF FOUND THEN
					rev := fresh;
				END IF;
			ELSIF kinds[i] = 4 THEN
				INSERT INTO oneclaw_logs (name, last) VALUES (names[i], expected[i] + counts[i])
					ON CONFLICT (name) DO UPDATE SET last = excluded.last
					RETURNING id INTO log_id;
				INSERT INTO oneclaw_records (log, position, label, data)
					SELECT log_id, expected[i] + r.n, r.label, r.data
					FROM unnest(labels[taken + 1 : taken + counts[i]], records[taken + 1 : taken + counts[i]])
						WITH ORDINALITY AS r(label, data, n);
			ELSE
				DELETE FROM oneclaw_logs WHERE name = names[i] RETURNING id INTO log_id;
				DELETE FROM oneclaw_records WHERE log = log_id;
			END IF;
			taken := taken + counts[i];
		END LOOP;
		results := results || rev;
		start := ends[w] + 1;
	END LOOP;
	RETURN results;
END $$;
