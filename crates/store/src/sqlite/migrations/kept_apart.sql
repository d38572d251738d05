-- Responses and conversations lie in a file of their own now (kept/schema.sql), to which they were copied before this runs.
DROP TABLE IF EXISTS conversation_item;
DROP TABLE IF EXISTS conversation;
DROP TABLE IF EXISTS response_item;
DROP TABLE IF EXISTS response;
