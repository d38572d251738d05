-- Uses of tools that ran at the provider, by commas: tool:web_search=3,tool:maps=1. Nothing where none was used.
ALTER TABLE usage ADD COLUMN tools TEXT;
