-- The database, whole. Later changes are numbered files beside this one (migrations/0002-….sql); see migration.rs. The functions that
-- decide are no part of it: each version has its own, in a schema of their own (functions.rs). What belongs to a table (triggers and their
-- functions) is here, once for all versions.
--
-- The same records as in SQLite (see there for what the columns mean), plus what several replicas need. Money is integer nano-USD, time
-- milliseconds since 1970. Ids are 16 bytes, time first.

-- The migrations that have run: 1 is this file.
CREATE TABLE migration (
  number integer PRIMARY KEY,
  name text NOT NULL,
  -- Of its words; comments and spacing do not count.
  fingerprint text NOT NULL
);

-- Numbers that the store keeps by name: the clock, the earliest version that can use the database.
CREATE TABLE meta (
  name text PRIMARY KEY,
  value bigint NOT NULL
);

-- Replicas judge each other by beats that go on, not by their clocks.
CREATE TABLE replica (
  id bytea PRIMARY KEY,
  beat_at bigint NOT NULL,
  -- The schema of the functions it uses; those that nobody uses are dropped.
  functions text
);

-- ── Accounts and keys ────────────────────

CREATE TABLE account (
  id bytea PRIMARY KEY,
  name text NOT NULL,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  -- Two pots, trial and paid, each with an available and a held part.
  trial_available bigint NOT NULL DEFAULT 0 CHECK (trial_available >= 0),
  paid_available bigint NOT NULL DEFAULT 0 CHECK (paid_available >= 0),
  trial_held bigint NOT NULL DEFAULT 0 CHECK (trial_held >= 0),
  paid_held bigint NOT NULL DEFAULT 0 CHECK (paid_held >= 0),
  topped_up boolean NOT NULL DEFAULT false,
  groups text NOT NULL DEFAULT '[]',
  closed_at bigint,
  -- Ledger time of the account never goes back, whichever replica writes.
  last_at bigint NOT NULL DEFAULT 0,
  -- Limits, and what was used of them in the day and the month that are named here.
  day_limit bigint,
  month_limit bigint,
  day bigint NOT NULL DEFAULT 0,
  day_used bigint NOT NULL DEFAULT 0 CHECK (day_used >= 0),
  month bigint NOT NULL DEFAULT 0,
  month_used bigint NOT NULL DEFAULT 0 CHECK (month_used >= 0),
  -- The end of the account's hash chain.
  links bigint NOT NULL DEFAULT 0,
  head bytea,
  -- Where the account wants to hear of all its tasks.
  webhook_url text
) WITH (fillfactor = 70);
CREATE INDEX account_changed ON account (changed_at);

-- API keys. The secret itself is never stored.
CREATE TABLE key (
  id bytea PRIMARY KEY,
  account_id bytea NOT NULL REFERENCES account (id),
  hash bytea NOT NULL UNIQUE,
  prefix text NOT NULL,
  name text NOT NULL,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint,
  models text,
  cidrs text,
  -- The limit for all time, and what counts against it.
  cap bigint,
  spent bigint NOT NULL DEFAULT 0 CHECK (spent >= 0),
  held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
  day_limit bigint,
  month_limit bigint,
  day bigint NOT NULL DEFAULT 0,
  day_used bigint NOT NULL DEFAULT 0 CHECK (day_used >= 0),
  month bigint NOT NULL DEFAULT 0,
  month_used bigint NOT NULL DEFAULT 0 CHECK (month_used >= 0)
) WITH (fillfactor = 70);
CREATE INDEX key_account ON key (account_id);
CREATE INDEX key_changed ON key (changed_at);

-- Credits with an end.
CREATE TABLE trial_lot (
  account_id bytea NOT NULL,
  credit bytea NOT NULL,
  reference text NOT NULL,
  expires_at bigint NOT NULL,
  free bigint NOT NULL CHECK (free >= 0),
  held bigint NOT NULL DEFAULT 0 CHECK (held >= 0),
  lapses integer NOT NULL DEFAULT 0,
  PRIMARY KEY (account_id, credit)
);
CREATE INDEX trial_lot_due ON trial_lot (expires_at) WHERE free > 0;

-- ── The ledger ────────────────────

-- Prices by the hash of their text: those that were ever held or charged for.
CREATE TABLE price (
  id bytea PRIMARY KEY,
  json text NOT NULL
);

-- Append-only; kinds and identities as in SQLite.
CREATE TABLE entry (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  op_id bytea NOT NULL UNIQUE,
  kind smallint NOT NULL,
  account_id bytea NOT NULL,
  key_id bytea,
  trial bigint NOT NULL,
  paid bigint NOT NULL,
  take_trial bigint NOT NULL DEFAULT 0,
  take_paid bigint NOT NULL DEFAULT 0,
  at bigint NOT NULL,
  price_id bytea,
  model text,
  endpoint text,
  expires_at bigint,
  paid_only boolean,
  replica bytea,
  reference text,
  actor text,
  reason text,
  call_id bytea GENERATED ALWAYS AS (CASE WHEN kind IN (6, 7) THEN NULL ELSE substring(op_id FROM 1 FOR 16) END) STORED,
  lots text,
  -- The account's hash chain.
  link bigint,
  hash bytea,
  CHECK (kind = 7 OR (trial >= 0 AND paid >= 0)),
  CHECK (take_trial BETWEEN 0 AND greatest(trial, 0) AND take_paid BETWEEN 0 AND greatest(paid, 0))
);
CREATE INDEX entry_event ON entry (account_id, seq) WHERE kind BETWEEN 6 AND 9;
CREATE UNIQUE INDEX entry_link ON entry (account_id, link);

CREATE FUNCTION tollgate_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE TRIGGER entry_append_only BEFORE UPDATE OR DELETE ON entry FOR EACH ROW EXECUTE FUNCTION tollgate_append_only();
-- The trigger for each row does not see a statement that empties the table.
CREATE TRIGGER entry_no_truncate BEFORE TRUNCATE ON entry FOR EACH STATEMENT EXECUTE FUNCTION tollgate_append_only();

-- The hash chain of each account; the words of chain.rs. A trigger links every entry, whichever function of whichever version inserts it, so
-- none can be forgotten, and all are linked alike. Entries of an account are inserted under its row lock, so there is one last link.

-- A value that can be missing is its length and itself, or all ones; written out, because a function for it costs more than the
-- hash.
CREATE FUNCTION tollgate_link() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  v_hash bytea;
  -- The last link of this transaction: account, number, hash. Set back when the transaction ends or a part of it is undone.
  v_last text[] := string_to_array(current_setting('tollgate.link', true), ' ');
  v_none CONSTANT bytea := '\xffffffff';
BEGIN
  -- Bytes are written as digits here, whatever the server is set to: its other form has spaces in it.
  IF v_last[1] = encode(NEW.account_id, 'hex') THEN
    NEW.link := v_last[2];
    v_hash := decode(v_last[3], 'hex');
  ELSE
    SELECT link, hash INTO NEW.link, v_hash FROM entry
      WHERE account_id = NEW.account_id AND link IS NOT NULL ORDER BY link DESC LIMIT 1;
  END IF;
  NEW.link := coalesce(NEW.link, 0) + 1;
  NEW.hash := sha256(coalesce(v_hash, '\x0000000000000000000000000000000000000000000000000000000000000000')
    || int8send(NEW.link) || int4send(length(NEW.op_id)) || NEW.op_id || int8send(NEW.kind)
    || int4send(length(NEW.account_id)) || NEW.account_id || coalesce(int4send(length(NEW.key_id)) || NEW.key_id, v_none)
    || int8send(NEW.trial) || int8send(NEW.paid) || int8send(NEW.take_trial) || int8send(NEW.take_paid) || int8send(NEW.at)
    || coalesce(int4send(length(NEW.price_id)) || NEW.price_id, v_none)
    || coalesce(int4send(length(convert_to(NEW.model, 'UTF8'))) || convert_to(NEW.model, 'UTF8'), v_none)
    || coalesce(int4send(length(convert_to(NEW.endpoint, 'UTF8'))) || convert_to(NEW.endpoint, 'UTF8'), v_none)
    || coalesce('\x00000008'::bytea || int8send(NEW.expires_at), v_none)
    || CASE WHEN NEW.paid_only THEN '\x0000000101'::bytea WHEN NOT NEW.paid_only THEN '\x0000000100'::bytea ELSE v_none END
    || coalesce(int4send(length(NEW.replica)) || NEW.replica, v_none)
    || coalesce(int4send(length(convert_to(NEW.reference, 'UTF8'))) || convert_to(NEW.reference, 'UTF8'), v_none)
    || coalesce(int4send(length(convert_to(NEW.actor, 'UTF8'))) || convert_to(NEW.actor, 'UTF8'), v_none)
    || coalesce(int4send(length(convert_to(NEW.reason, 'UTF8'))) || convert_to(NEW.reason, 'UTF8'), v_none)
    || coalesce(int4send(length(convert_to(NEW.lots, 'UTF8'))) || convert_to(NEW.lots, 'UTF8'), v_none));
  PERFORM set_config('tollgate.link', concat_ws(' ', encode(NEW.account_id, 'hex'), NEW.link, encode(NEW.hash, 'hex')), true);
  RETURN NEW;
END $$;

CREATE TRIGGER entry_link BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION tollgate_link();

-- Holds without a terminal entry, so that any replica can resolve those of a dead one.
CREATE TABLE open_hold (
  call_id bytea PRIMARY KEY,
  account_id bytea NOT NULL,
  key_id bytea NOT NULL,
  trial bigint NOT NULL,
  paid bigint NOT NULL,
  paid_only boolean NOT NULL,
  at bigint NOT NULL,
  expires_at bigint NOT NULL,
  price_id bytea NOT NULL,
  model text NOT NULL,
  endpoint text NOT NULL,
  key_hash bytea,
  replica bytea NOT NULL,
  -- When it is past its time, by the clock of the database.
  due_at bigint NOT NULL DEFAULT 0,
  -- From which lots it has its trial money, and what of it counts in which day and month.
  lots text,
  day bigint NOT NULL DEFAULT 0,
  day_used bigint NOT NULL DEFAULT 0,
  month bigint NOT NULL DEFAULT 0,
  month_used bigint NOT NULL DEFAULT 0,
  -- The hold of a task outlives the replica that took it.
  task boolean NOT NULL DEFAULT false
);
-- Each replica looks for its own holds past their time, and for all of a dead one.
CREATE INDEX open_hold_replica ON open_hold (replica);

-- Holds that were released by another replica than the one that took them, until that one says how the call ended: it can still be
-- charged when its replica comes back.
CREATE TABLE lost_hold (
  call_id bytea PRIMARY KEY,
  account_id bytea NOT NULL,
  key_id bytea NOT NULL,
  held bigint NOT NULL,
  paid_only boolean NOT NULL,
  at bigint NOT NULL,
  expires_at bigint NOT NULL,
  price_id bytea NOT NULL,
  model text NOT NULL,
  endpoint text NOT NULL,
  key_hash bytea,
  fingerprint bytea,
  replica bytea NOT NULL,
  -- By the clock of the database.
  lost_at bigint NOT NULL
);
CREATE INDEX lost_hold_at ON lost_hold (lost_at);

-- Every entry as moves between books: the customer's four pots and the platform's accounts.
CREATE VIEW move AS
  SELECT seq, account_id, 'trial_available' AS source, 'trial_held' AS target, trial AS amount FROM entry WHERE kind IN (0, 4)
  UNION ALL SELECT seq, account_id, 'paid_available', 'paid_held', paid FROM entry WHERE kind IN (0, 4)
  UNION ALL SELECT seq, account_id, 'trial_held', 'revenue', take_trial FROM entry WHERE kind = 1
  UNION ALL SELECT seq, account_id, 'paid_held', 'revenue', take_paid FROM entry WHERE kind = 1
  UNION ALL SELECT seq, account_id, 'trial_held', 'trial_available', trial - take_trial FROM entry WHERE kind IN (1, 2, 3)
  UNION ALL SELECT seq, account_id, 'paid_held', 'paid_available', paid - take_paid FROM entry WHERE kind IN (1, 2, 3)
  UNION ALL SELECT seq, account_id, 'losses', 'revenue', paid FROM entry WHERE kind = 5
  UNION ALL SELECT seq, account_id, 'promotion', 'trial_available', trial FROM entry WHERE kind = 6
  UNION ALL SELECT seq, account_id, 'cash', 'paid_available', paid FROM entry WHERE kind = 6
  UNION ALL SELECT seq, account_id, 'adjustments', 'trial_available', trial FROM entry WHERE kind = 7
  UNION ALL SELECT seq, account_id, 'adjustments', 'paid_available', paid FROM entry WHERE kind = 7
  UNION ALL SELECT seq, account_id, 'revenue', 'trial_available', trial FROM entry WHERE kind = 8
  UNION ALL SELECT seq, account_id, 'revenue', 'paid_available', paid FROM entry WHERE kind = 8
  UNION ALL SELECT seq, account_id, 'trial_available', 'promotion', trial FROM entry WHERE kind = 9;
-- The same as debit and credit.
CREATE VIEW posting AS
  SELECT seq, account_id, source AS book, amount AS debit, 0::bigint AS credit FROM move WHERE amount <> 0
  UNION ALL SELECT seq, account_id, target, 0, amount FROM move WHERE amount <> 0;

-- What an operation of a group answers; see functions.sql.
CREATE TYPE tollgate_outcome AS (
  outcome text, x bigint, y bigint, call bytea, status integer, content_type text, reply bytea
);

-- ── Calls ────────────────────

-- One row per call, written with its end.
CREATE TABLE usage (
  account_id bytea NOT NULL,
  call_id bytea NOT NULL,
  key_id bytea NOT NULL,
  at bigint NOT NULL,
  ended_at bigint NOT NULL,
  endpoint text NOT NULL,
  model text NOT NULL,
  provider text,
  upstream_model text,
  ending smallint NOT NULL,
  reason text NOT NULL,
  status integer NOT NULL,
  -- Counters.
  input bigint NOT NULL,
  cache_read bigint NOT NULL,
  cache_write_5m bigint NOT NULL,
  cache_write_1h bigint NOT NULL,
  image_input bigint NOT NULL,
  audio_input bigint NOT NULL,
  output bigint NOT NULL,
  reasoning bigint NOT NULL,
  image_output bigint NOT NULL,
  audio_output bigint NOT NULL,
  calls bigint NOT NULL,
  seconds bigint NOT NULL,
  estimated boolean NOT NULL,
  -- Money.
  hold bigint NOT NULL,
  charge bigint NOT NULL,
  refunded bigint NOT NULL,
  write_off bigint NOT NULL,
  price_id bytea,
  raw_usage text,
  attempts bigint NOT NULL,
  first_byte_ms bigint,
  tier text,
  dropped text,
  -- Of the row (row_hash.rs).
  hash bytea,
  tools text,
  PRIMARY KEY (account_id, call_id)
);
CREATE INDEX usage_call ON usage (call_id);

-- Idempotency keys, with the reply of the call that was done under them.
CREATE TABLE idem (
  account_id bytea NOT NULL,
  key_hash bytea NOT NULL,
  fingerprint bytea NOT NULL,
  call_id bytea NOT NULL,
  at bigint NOT NULL,
  done smallint NOT NULL DEFAULT 0,
  status integer,
  content_type text,
  reply bytea,
  PRIMARY KEY (account_id, key_hash)
);
CREATE INDEX idem_at ON idem (at);

-- How many bytes of replies are stored for the idempotency keys of an account, by the hour (since 1970) in which its calls ended. An hour whose
-- keys are all forgotten goes with them.
CREATE TABLE idem_kept (
  account_id bytea NOT NULL,
  hour bigint NOT NULL,
  bytes bigint NOT NULL,
  PRIMARY KEY (account_id, hour)
);
CREATE INDEX idem_kept_hour ON idem_kept (hour);

-- ── Tasks ────────────────────

-- As in SQLite, plus what several replicas need: times to come are by the clock of the database, and whoever
-- takes a task leaves its name and counts the fence up.
CREATE TABLE task (
  call_id bytea PRIMARY KEY,
  account_id bytea NOT NULL,
  key_id bytea NOT NULL,
  endpoint text NOT NULL,
  model text NOT NULL,
  provider text,
  upstream_model text,
  upstream_id text,
  state smallint NOT NULL,
  progress smallint,
  plan text NOT NULL,
  result text,
  failure_code text,
  failure_message text,
  webhook_url text,
  created_at bigint NOT NULL,
  checked_at bigint,
  unknown_since bigint,
  ended_at bigint,
  price_id bytea NOT NULL,
  hidden boolean NOT NULL DEFAULT false,
  due_at bigint NOT NULL,
  fence bigint NOT NULL DEFAULT 1,
  leased boolean NOT NULL DEFAULT true,
  owner bytea NOT NULL,
  -- Where it was sent: the provider's host, and a fingerprint of the key (never the key), so that nobody else is asked for it.
  upstream_host text,
  upstream_key text,
  -- What the provider last said of it; see SQLite.
  heard smallint,
  absent_since bigint,
  made_since bigint,
  quiet boolean NOT NULL DEFAULT false
) WITH (fillfactor = 70);
CREATE INDEX task_account ON task (account_id, call_id);
CREATE INDEX task_open ON task (due_at) WHERE state < 5;
CREATE INDEX task_owner ON task (owner) WHERE leased AND state < 5;
-- Whether an entry of a provider's list is a task of ours, and which of ours have no name there.
CREATE INDEX task_upstream ON task (upstream_id) WHERE upstream_id IS NOT NULL;
CREATE INDEX task_nameless ON task (created_at) WHERE upstream_id IS NULL;

-- The names of tasks at their providers, each at one host once, so that no task is ever taken for another's.
CREATE TABLE task_name (
  home text NOT NULL,
  upstream_id text NOT NULL,
  call_id bytea NOT NULL,
  PRIMARY KEY (home, upstream_id)
);

-- Who is still to be notified of the end of a task.
CREATE TABLE webhook (
  call_id bytea PRIMARY KEY,
  account_id bytea NOT NULL,
  url text NOT NULL,
  attempts integer NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  due_at bigint NOT NULL,
  fence bigint NOT NULL DEFAULT 0
);
CREATE INDEX webhook_due ON webhook (due_at);

-- The next free turn at each provider, in microseconds of the database's clock, which all replicas share. Lost in a crash of the
-- server without harm.
CREATE UNLOGGED TABLE turn (
  line text PRIMARY KEY,
  next_us bigint NOT NULL
) WITH (fillfactor = 50);

-- ── What customers store ────────────────────

-- What a later request may name: responses, and conversations with their items. Texts are opaque to the store.
CREATE TABLE response (
  account_id bytea NOT NULL,
  id text NOT NULL,
  previous text,
  conversation text,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  bytes bigint NOT NULL,
  input text NOT NULL,
  object text NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX response_due ON response (expires_at);

CREATE TABLE response_item (
  account_id bytea NOT NULL,
  id text NOT NULL,
  response_id text NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX response_item_of ON response_item (account_id, response_id);

CREATE TABLE conversation (
  account_id bytea NOT NULL,
  id text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  metadata text NOT NULL,
  PRIMARY KEY (account_id, id)
);
CREATE INDEX conversation_due ON conversation (expires_at);

-- In the order of seq.
CREATE TABLE conversation_item (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id bytea NOT NULL,
  conversation text NOT NULL,
  id text NOT NULL,
  item text NOT NULL,
  UNIQUE (account_id, conversation, id)
);
CREATE INDEX conversation_item_of ON conversation_item (account_id, conversation, seq);
-- An item of any conversation can be named by its id alone.
CREATE INDEX conversation_item_named ON conversation_item (account_id, id);

-- How much each account has stored: responses, conversations and their items. The triggers count, once per statement. 512 is ROW_BYTES
-- of quota.rs.
CREATE TABLE stored (
  account_id bytea PRIMARY KEY,
  bytes bigint NOT NULL DEFAULT 0,
  objects bigint NOT NULL DEFAULT 0,
  items bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- Accounts in one order, so that two that erase do not wait for each other in a circle.
CREATE FUNCTION stored_count(v_accounts bytea[], v_bytes bigint[], v_objects bigint[], v_items bigint[]) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO stored (account_id, bytes, objects, items)
    SELECT account_id, sum(bytes), sum(objects), sum(items)
    FROM unnest(v_accounts, v_bytes, v_objects, v_items) AS c (account_id, bytes, objects, items)
    GROUP BY account_id ORDER BY account_id
    ON CONFLICT (account_id) DO UPDATE SET bytes = stored.bytes + EXCLUDED.bytes,
      objects = stored.objects + EXCLUDED.objects, items = stored.items + EXCLUDED.items
$$;

CREATE FUNCTION stored_response() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_sign bigint := CASE WHEN TG_OP = 'DELETE' THEN -1 ELSE 1 END;
BEGIN
  PERFORM stored_count(array_agg(account_id), array_agg(v_sign * (512 + octet_length(id) + bytes)), array_agg(v_sign),
    array_agg(0::bigint)) FROM changed HAVING count(*) > 0;
  RETURN NULL;
END $$;
CREATE FUNCTION stored_response_item() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_sign bigint := CASE WHEN TG_OP = 'DELETE' THEN -1 ELSE 1 END;
BEGIN
  PERFORM stored_count(array_agg(account_id), array_agg(v_sign * (512 + octet_length(id) + octet_length(response_id))),
    array_agg(0::bigint), array_agg(v_sign)) FROM changed HAVING count(*) > 0;
  RETURN NULL;
END $$;
CREATE FUNCTION stored_conversation() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_sign bigint := CASE WHEN TG_OP = 'DELETE' THEN -1 ELSE 1 END;
BEGIN
  PERFORM stored_count(array_agg(account_id), array_agg(v_sign * (512 + octet_length(id) + octet_length(metadata))),
    array_agg(v_sign), array_agg(0::bigint)) FROM changed HAVING count(*) > 0;
  RETURN NULL;
END $$;
CREATE FUNCTION stored_metadata() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Most changes only put off the end.
  PERFORM stored_count(array_agg(n.account_id), array_agg((octet_length(n.metadata) - octet_length(o.metadata))::bigint),
    array_agg(0::bigint), array_agg(0::bigint))
    FROM changed n JOIN before o ON o.account_id = n.account_id AND o.id = n.id
    WHERE octet_length(n.metadata) <> octet_length(o.metadata) HAVING count(*) > 0;
  RETURN NULL;
END $$;
CREATE FUNCTION stored_conversation_item() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE v_sign bigint := CASE WHEN TG_OP = 'DELETE' THEN -1 ELSE 1 END;
BEGIN
  PERFORM stored_count(array_agg(account_id),
    array_agg(v_sign * (512 + octet_length(conversation) + octet_length(id) + octet_length(item))),
    array_agg(0::bigint), array_agg(v_sign)) FROM changed HAVING count(*) > 0;
  RETURN NULL;
END $$;

CREATE TRIGGER stored_in AFTER INSERT ON response REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_response();
CREATE TRIGGER stored_out AFTER DELETE ON response REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_response();
CREATE TRIGGER stored_in AFTER INSERT ON response_item REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_response_item();
CREATE TRIGGER stored_out AFTER DELETE ON response_item REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_response_item();
CREATE TRIGGER stored_in AFTER INSERT ON conversation REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_conversation();
CREATE TRIGGER stored_out AFTER DELETE ON conversation REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_conversation();
CREATE TRIGGER stored_changed AFTER UPDATE ON conversation REFERENCING NEW TABLE AS changed OLD TABLE AS before
  FOR EACH STATEMENT EXECUTE FUNCTION stored_metadata();
CREATE TRIGGER stored_in AFTER INSERT ON conversation_item REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_conversation_item();
CREATE TRIGGER stored_out AFTER DELETE ON conversation_item REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION stored_conversation_item();

-- ── Social data ────────────────────

-- Pauses of a model (a cell of social data is one) or of a provider, by `kind`; `model` is the name of either.
CREATE TABLE social_change (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  model text NOT NULL,
  paused boolean NOT NULL,
  at bigint NOT NULL,
  actor text NOT NULL,
  reason text NOT NULL,
  kind text NOT NULL DEFAULT 'model'
);
CREATE INDEX social_change_model ON social_change (model, seq);
CREATE FUNCTION tollgate_done_is_done() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'what was done is not changed'; END $$;
CREATE TRIGGER social_change_append_only BEFORE UPDATE OR DELETE ON social_change
  FOR EACH ROW EXECUTE FUNCTION tollgate_done_is_done();

-- Calls and their cost by day. Platform '' is all of them.
CREATE TABLE social_day (
  day bigint NOT NULL,
  platform text NOT NULL,
  calls bigint NOT NULL DEFAULT 0,
  cost bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (day, platform)
);

-- Takes a call's part of a day, or says which limit was met. Both rows are locked in one order, that of all platforms first,
-- and so they are where a cost is given back: replicas wait for each other but never in a circle.
CREATE FUNCTION tollgate_social_take(
  of_day bigint, of_platform text, more bigint,
  all_calls bigint, all_cost bigint, own_calls bigint, own_cost bigint
) RETURNS smallint LANGUAGE plpgsql AS $$
DECLARE
  whole social_day;
  own social_day;
BEGIN
  INSERT INTO social_day (day, platform) VALUES (of_day, ''), (of_day, of_platform) ON CONFLICT DO NOTHING;
  SELECT * INTO whole FROM social_day WHERE day = of_day AND platform = '' FOR UPDATE;
  SELECT * INTO own FROM social_day WHERE day = of_day AND platform = of_platform FOR UPDATE;
  IF whole.calls + 1 > all_calls THEN RETURN 1; END IF;
  IF whole.cost + more > all_cost THEN RETURN 2; END IF;
  IF own.calls + 1 > own_calls THEN RETURN 3; END IF;
  IF own.cost + more > own_cost THEN RETURN 4; END IF;
  UPDATE social_day SET calls = calls + 1, cost = cost + more
    WHERE day = of_day AND platform IN ('', of_platform);
  RETURN 0;
END $$;

-- Calls that found nothing, which cost the operator: what is not asked again for a while, and who asked.
CREATE TABLE social_vain (
  call_id bytea PRIMARY KEY,
  question bytea NOT NULL,
  account_id bytea NOT NULL,
  at bigint NOT NULL,
  until bigint NOT NULL
);
CREATE INDEX social_vain_at ON social_vain (at);

-- The last beginnings on a route, in milliseconds of the database's clock, which all replicas share. Lost in a crash of
-- the server without harm.
CREATE UNLOGGED TABLE social_pace (
  route text PRIMARY KEY,
  turns bigint[] NOT NULL
);

-- Milliseconds until the caller's turn, so that at most so many begin in any second; a negative number: it would be that
-- long, the line is full, and no turn was taken.
CREATE FUNCTION tollgate_social_turn(of_route text, per_second integer, patience bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now_ms bigint;
  mine bigint;
  list bigint[];
BEGIN
  INSERT INTO social_pace (route, turns) VALUES (of_route, '{}') ON CONFLICT DO NOTHING;
  SELECT turns INTO list FROM social_pace WHERE route = of_route FOR UPDATE;
  now_ms := extract(epoch FROM clock_timestamp()) * 1000;
  -- A clock that was set back would leave turns far ahead.
  IF list[cardinality(list)] > now_ms + 60000 THEN list := '{}'; END IF;
  list := list[greatest(cardinality(list) - per_second + 1, 1):];
  mine := greatest(now_ms, coalesce(list[cardinality(list)], now_ms));
  IF cardinality(list) = per_second THEN mine := greatest(mine, list[1] + 1000); END IF;
  IF mine - now_ms > patience THEN RETURN now_ms - mine; END IF;
  UPDATE social_pace SET turns = list || mine WHERE route = of_route;
  RETURN mine - now_ms;
END $$;

-- ── Operators and secrets ────────────────────

-- Who may use the operator's API. The secret itself is never stored.
CREATE TABLE admin_key (
  id bytea PRIMARY KEY,
  hash bytea NOT NULL UNIQUE,
  prefix text NOT NULL,
  name text NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked_at bigint
);

-- What operators did besides money (which has its own rows in the ledger) and pauses (social_change); `detail` is what was changed into
-- what.
CREATE TABLE operator_event (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  actor text NOT NULL,
  action text NOT NULL,
  subject text NOT NULL,
  reason text NOT NULL,
  detail text NOT NULL DEFAULT ''
);
CREATE TRIGGER operator_event_append_only BEFORE UPDATE OR DELETE ON operator_event
  FOR EACH ROW EXECUTE FUNCTION tollgate_done_is_done();

-- Keys that sign receipts, shared by all replicas: one has no end and signs, the others only verify. The secret of a key
-- that has ended is erased.
CREATE TABLE receipt_key (
  public bytea PRIMARY KEY,
  secret bytea,
  from_at bigint NOT NULL,
  until_at bigint,
  CHECK ((until_at IS NULL) = (secret IS NOT NULL))
);
CREATE UNIQUE INDEX receipt_key_signs ON receipt_key ((1)) WHERE until_at IS NULL;

-- The names of the secrets that sign links and webhooks, which say nothing of the secrets themselves: whoever starts with others, or
-- with none, is reported.
CREATE TABLE signing_secret (
  name text PRIMARY KEY,
  seen_at bigint NOT NULL
);
