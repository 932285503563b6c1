-- What came from a user, a token or a session is found without reading every session. The parent of what a session created is the
-- session: `created_by_id` and `link_created_by_id` may have its id.
CREATE INDEX sessions_by_link_creator ON sessions (link_created_by_id) WHERE link_created_by_id IS NOT NULL;
