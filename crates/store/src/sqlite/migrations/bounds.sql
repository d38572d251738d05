-- A sum above 2^63 would go on in floating point, and the books with it. Amounts are bounded where they enter (bounds.rs); should one come
-- by all the same, the operation is refused and not the money bent.
CREATE TRIGGER account_whole BEFORE UPDATE ON account
  WHEN typeof(new.trial_available) <> 'integer' OR typeof(new.paid_available) <> 'integer' OR typeof(new.trial_held) <> 'integer'
    OR typeof(new.paid_held) <> 'integer' OR typeof(new.day_used) <> 'integer' OR typeof(new.month_used) <> 'integer'
  BEGIN SELECT raise(ABORT, 'an amount is too large'); END;
CREATE TRIGGER key_whole BEFORE UPDATE ON key
  WHEN typeof(new.spent) <> 'integer' OR typeof(new.held) <> 'integer' OR typeof(new.day_used) <> 'integer'
    OR typeof(new.month_used) <> 'integer'
  BEGIN SELECT raise(ABORT, 'an amount is too large'); END;
CREATE TRIGGER trial_lot_whole BEFORE UPDATE ON trial_lot
  WHEN typeof(new.free) <> 'integer' OR typeof(new.held) <> 'integer'
  BEGIN SELECT raise(ABORT, 'an amount is too large'); END;
CREATE TRIGGER usage_whole BEFORE UPDATE ON usage WHEN typeof(new.refunded) <> 'integer'
  BEGIN SELECT raise(ABORT, 'an amount is too large'); END;
