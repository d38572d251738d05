-- What a provider last said of a task: queued or running; since when it has said nothing but that it has no such task; when it first
-- said that the video is made. And whether nobody may ask before the task is due.
ALTER TABLE task ADD COLUMN heard INTEGER;
ALTER TABLE task ADD COLUMN absent_since INTEGER;
ALTER TABLE task ADD COLUMN made_since INTEGER;
ALTER TABLE task ADD COLUMN quiet INTEGER NOT NULL DEFAULT 0;
