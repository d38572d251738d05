//! Questions to the database whose only right answer is "no rows". The SQL is understood by both
//! engines; each row is an id and a text that says what does not add up.

/// Invariant and question.
pub(crate) const QUESTIONS: [(&str, &str); 2] = [("I13", IDEMPOTENCY), ("I14", TASKS)];

const IDEMPOTENCY: &str = "
SELECT i.call_id, 'the call has ended but its idempotency key is still running'
FROM idem i WHERE i.done = 0 AND EXISTS (
  SELECT 1 FROM usage u WHERE u.account_id = i.account_id AND u.call_id = i.call_id)
LIMIT 20";

// A usage row is written with the terminal entry of its call (I11), so it stands for both. Those
// that are open, and those that ended without a video, have taken no money.
const TASKS: &str = "
SELECT t.call_id, 'the task and its call did not end together, or it took money for nothing'
FROM task t LEFT JOIN usage u ON u.account_id = t.account_id AND u.call_id = t.call_id
WHERE (t.state >= 5) <> (u.call_id IS NOT NULL) OR (t.state > 5 AND u.charge > 0)
LIMIT 20";
