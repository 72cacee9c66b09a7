-- An exchange of ids finds objects by their ids alone. Collections, groups and
-- reports have no index for that: their keys begin with the client.
CREATE UNIQUE INDEX collections_id_unique ON collections (id);
CREATE UNIQUE INDEX groups_id_unique ON groups (id);
CREATE UNIQUE INDEX reports_id_unique ON reports (id);
