-- The marks of prompts that earlier versions kept could be tried with guesses by whoever reads the database. They are not missed: by
-- them only creations were looked for whose answer had been lost, and those stay unknown.
UPDATE task SET plan = regexp_replace(plan, ',"prompt_mark":"[0-9a-f]{32}"', '') WHERE plan LIKE '%"prompt_mark"%';
