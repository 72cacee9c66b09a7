-- locks: reports, SHARE, 1 s per million rows
-- An exchange of ids finds objects by their ids alone. Of the kinds only reports
-- have no index for that: their key begins with the client.
CREATE UNIQUE INDEX reports_id_unique ON reports (id);
