-- What an operator changed into what.
ALTER TABLE operator_event ADD COLUMN detail TEXT NOT NULL DEFAULT '';
-- Whether a model (a cell of social data is one) or a provider is paused; `model` is the name of either.
ALTER TABLE social_change ADD COLUMN kind TEXT NOT NULL DEFAULT 'model';
