//! Questions to the database whose only right answer is "no rows". The SQL is understood by both engines; each row
//! is an id and a text that says what does not add up.

/// Invariant and question.
pub(crate) const QUESTIONS: [(&str, &str); 1] = [("I13", IDEMPOTENCY)];

const IDEMPOTENCY: &str = "
SELECT i.call_id, 'the call has ended but its idempotency key is still running'
FROM idem i WHERE i.done = 0 AND EXISTS (
  SELECT 1 FROM usage u WHERE u.account_id = i.account_id AND u.call_id = i.call_id)
LIMIT 20";
