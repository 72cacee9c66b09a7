-- +goose Up
-- locks: clients, SHARE ROW EXCLUSIVE, a moment
-- locks: users, SHARE ROW EXCLUSIVE, a moment
-- Clients' directories, what is known of their accounts, and the runs that sync
-- users with them.

CREATE TABLE directory_connections (
    client_id   uuid PRIMARY KEY REFERENCES clients,
    provider    text NOT NULL CHECK (provider IN ('microsoft', 'google')),
    -- What is no secret, and the sealed credentials.
    settings    jsonb NOT NULL,
    credentials bytea NOT NULL,
    -- Where the next run begins to read; null for the beginning.
    position    text,
    next_run_at timestamptz NOT NULL,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    -- When a run completed last.
    synced_at   timestamptz
);
CREATE INDEX directory_connections_by_next ON directory_connections (next_run_at);

-- The accounts of a client's directory as runs have applied them, also those that
-- no user was made of: a later delta names only what has changed.
CREATE TABLE directory_accounts (
    client_id uuid NOT NULL REFERENCES clients,
    object_id text COLLATE "C" NOT NULL,
    account   jsonb NOT NULL,
    user_id   uuid,
    -- It was skipped, or its address could not be followed: every run tries again.
    unsettled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (client_id, object_id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
CREATE UNIQUE INDEX directory_accounts_by_user ON directory_accounts (client_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX directory_accounts_unsettled ON directory_accounts (client_id, object_id) WHERE unsettled;

CREATE TABLE sync_runs (
    client_id   uuid NOT NULL REFERENCES clients,
    id          uuid NOT NULL,
    status      text NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed')),
    trigger     text NOT NULL CHECK (trigger IN ('api', 'schedule', 'command')),
    -- Passes the guard against many deactivations.
    force       boolean NOT NULL DEFAULT false,
    queued_at   timestamptz NOT NULL,
    started_at  timestamptz,
    finished_at timestamptz,
    updated_at  timestamptz NOT NULL,
    created     integer NOT NULL DEFAULT 0,
    updated     integer NOT NULL DEFAULT 0,
    deactivated integer NOT NULL DEFAULT 0,
    merged      integer NOT NULL DEFAULT 0,
    unchanged   integer NOT NULL DEFAULT 0,
    skipped     jsonb NOT NULL DEFAULT '[]',
    error       text,
    -- How far it is: accounts are read into sync_accounts, judged as a whole, and
    -- then applied. position is where reading continues, or else where the next
    -- run begins.
    stage        text NOT NULL DEFAULT 'reading' CHECK (stage IN ('reading', 'judging', 'applying')),
    position     text NOT NULL DEFAULT '',
    from_start   boolean NOT NULL DEFAULT false,
    whole        boolean NOT NULL DEFAULT false,
    started_over boolean NOT NULL DEFAULT false,
    lease        uuid,
    leased_until timestamptz,
    PRIMARY KEY (client_id, id)
);
CREATE UNIQUE INDEX sync_runs_open ON sync_runs (client_id) WHERE status IN ('queued', 'running');
CREATE INDEX sync_runs_waiting ON sync_runs (queued_at) WHERE status IN ('queued', 'running');
CREATE INDEX sync_runs_by_queued ON sync_runs (client_id, queued_at, id);
CREATE INDEX sync_runs_by_age ON sync_runs (queued_at);

-- What the open run of a client has read. account is null where nothing changed.
-- phase is the order of applying: 0 for nothing to do, 1 for accounts whose users
-- leave, 2 for users to update, 3 for addresses that another user is to give up
-- first, 4 for accounts without a user.
CREATE TABLE sync_accounts (
    client_id uuid NOT NULL,
    object_id text COLLATE "C" NOT NULL,
    account   jsonb,
    phase     smallint NOT NULL,
    PRIMARY KEY (client_id, object_id)
);
CREATE INDEX sync_accounts_by_phase ON sync_accounts (client_id, phase, object_id) WHERE phase > 0;
