-- The marks of prompts that earlier versions kept could be tried with guesses by whoever reads the database. They are not missed: by
-- them only creations were looked for whose answer had been lost, and those stay unknown.
UPDATE task SET plan = json_remove(plan, '$.prompt_mark') WHERE plan LIKE '%"prompt_mark"%' AND json_valid(plan);
