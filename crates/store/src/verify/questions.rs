//! Questions to the database whose only right answer is "no rows". The SQL is understood by both engines; each row
//! is an id and a text that says what does not add up.

/// Invariant and question.
pub(crate) const QUESTIONS: [(&str, &str); 6] = [
    ("I1", BALANCES),
    ("I1", KEY_SPENDING),
    ("I2", POSTINGS),
    ("I11", USAGE_SUMS),
    ("I12", REFUNDS),
    ("I13", IDEMPOTENCY),
];

const BALANCES: &str = "
SELECT coalesce(a.id, e.account_id), 'balance differs from the ledger: trial ' || coalesce(a.trial_available, 0) || '/'
  || coalesce(e.ta, 0) || ', paid ' || coalesce(a.paid_available, 0) || '/' || coalesce(e.pa, 0) || ', held '
  || coalesce(a.trial_held + a.paid_held, 0) || '/' || coalesce(e.th + e.ph, 0)
FROM (SELECT account_id,
    sum(CASE WHEN kind IN (0, 4) THEN -trial WHEN kind IN (1, 2, 3) THEN trial - take_trial WHEN kind = 5 THEN 0 WHEN kind = 9 THEN -trial ELSE trial END) AS ta,
    sum(CASE WHEN kind IN (0, 4) THEN -paid WHEN kind IN (1, 2, 3) THEN paid - take_paid WHEN kind IN (5, 9) THEN 0 ELSE paid END) AS pa,
    sum(CASE WHEN kind IN (0, 4) THEN trial WHEN kind IN (1, 2, 3) THEN -trial ELSE 0 END) AS th,
    sum(CASE WHEN kind IN (0, 4) THEN paid WHEN kind IN (1, 2, 3) THEN -paid ELSE 0 END) AS ph
  FROM entry GROUP BY account_id) e
FULL JOIN account a ON a.id = e.account_id
WHERE a.id IS NULL OR a.trial_available <> coalesce(e.ta, 0) OR a.paid_available <> coalesce(e.pa, 0)
  OR a.trial_held <> coalesce(e.th, 0) OR a.paid_held <> coalesce(e.ph, 0)
LIMIT 20";

const KEY_SPENDING: &str = "
SELECT k.id, 'key spending differs from the ledger: spent ' || k.spent || '/' || coalesce(e.spent, 0) || ', held '
  || k.held || '/' || coalesce(e.held, 0)
FROM key k LEFT JOIN (SELECT key_id,
    sum(CASE WHEN kind = 1 THEN take_trial + take_paid WHEN kind = 8 THEN -trial - paid ELSE 0 END) AS spent,
    sum(CASE WHEN kind IN (0, 4) THEN trial + paid WHEN kind IN (1, 2, 3) THEN -trial - paid ELSE 0 END) AS held
  FROM entry WHERE key_id IS NOT NULL GROUP BY key_id) e ON e.key_id = k.id
WHERE k.spent <> coalesce(e.spent, 0) OR k.held <> coalesce(e.held, 0)
LIMIT 20";

const POSTINGS: &str = "
SELECT NULL, 'debits and credits differ by ' || (sum(debit) - sum(credit))
FROM posting HAVING sum(debit) - sum(credit) <> 0";

const USAGE_SUMS: &str = "
SELECT e.account_id, 'usage log and ledger differ: charged ' || coalesce(u.charge, 0) || '/' || e.charge
  || ', written off ' || coalesce(u.write_off, 0) || '/' || e.write_off || ', refunded ' || coalesce(u.refunded, 0)
  || '/' || e.refunded || ', calls ' || coalesce(u.calls, 0) || '/' || e.calls
FROM (SELECT account_id,
    sum(CASE WHEN kind = 1 THEN take_trial + take_paid ELSE 0 END) AS charge,
    sum(CASE WHEN kind = 5 THEN paid ELSE 0 END) AS write_off,
    sum(CASE WHEN kind = 8 THEN trial + paid ELSE 0 END) AS refunded,
    sum(CASE WHEN kind IN (1, 2, 3) THEN 1 WHEN kind = 10 THEN -1 ELSE 0 END) AS calls
  FROM entry GROUP BY account_id) e
LEFT JOIN (SELECT account_id, sum(charge) AS charge, sum(write_off) AS write_off, sum(refunded) AS refunded,
    sum(CASE WHEN price_id IS NOT NULL THEN 1 ELSE 0 END) AS calls
  FROM usage GROUP BY account_id) u ON u.account_id = e.account_id
WHERE coalesce(u.charge, 0) <> e.charge OR coalesce(u.write_off, 0) <> e.write_off
  OR coalesce(u.refunded, 0) <> e.refunded OR coalesce(u.calls, 0) <> e.calls
LIMIT 20";

const REFUNDS: &str = "
SELECT u.call_id, 'refunded ' || u.refunded || ' of ' || u.charge FROM usage u WHERE u.refunded > u.charge LIMIT 20";

const IDEMPOTENCY: &str = "
SELECT i.call_id, 'the call has ended but its idempotency key is still running'
FROM idem i WHERE i.done = 0 AND EXISTS (
  SELECT 1 FROM usage u WHERE u.account_id = i.account_id AND u.call_id = i.call_id)
LIMIT 20";
