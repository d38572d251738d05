-- What a provider last said of a task: queued or running; since when it has said nothing but that it has no such task; when it first
-- said that the video is made. And whether nobody may ask before the task is due.
ALTER TABLE task ADD COLUMN heard smallint;
ALTER TABLE task ADD COLUMN absent_since bigint;
ALTER TABLE task ADD COLUMN made_since bigint;
ALTER TABLE task ADD COLUMN quiet boolean NOT NULL DEFAULT false;
