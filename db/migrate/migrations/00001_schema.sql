-- +goose Up
-- locks: none
-- The schema of 1.0.0. docs/schema.md is written from a migrated database, and shows it with these comments.
--
-- Tables of tenants lead with client_id (those of partners with partner_id) in their keys and indexes, so that they can
-- be sharded by it. Texts that are sorted are compared by byte (COLLATE "C"). A column name_key holds what
-- domain.SortKey makes of a name, by which names are compared and sorted. Days are of UTC.

-- subject: Partners, keys and the audit trail

CREATE TABLE partners (
    id           uuid PRIMARY KEY,
    name         text NOT NULL,
    name_key     text COLLATE "C" NOT NULL,
    client_count integer NOT NULL DEFAULT 0,
    mails_off    text[] NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL,
    CONSTRAINT partners_name_unique UNIQUE (name_key)
);
COMMENT ON TABLE partners IS 'Those who manage clients. No request crosses partners.';
COMMENT ON COLUMN partners.client_count IS 'Stored count of the clients that are not archived.';
COMMENT ON COLUMN partners.mails_off IS 'The kinds of partner_mails that are switched off.';

CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    partner_id   uuid NOT NULL REFERENCES partners,
    name         text NOT NULL,
    prefix       text NOT NULL,
    digest       bytea NOT NULL,
    scopes       text[] NOT NULL,
    all_clients  boolean NOT NULL,
    networks     cidr[] NOT NULL DEFAULT '{}',
    demo         boolean NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz,
    CONSTRAINT api_keys_digest_unique UNIQUE (digest),
    CONSTRAINT api_keys_prefix_unique UNIQUE (prefix)
);
COMMENT ON TABLE api_keys IS 'API keys. The key itself is not stored.';
COMMENT ON COLUMN api_keys.prefix IS 'The beginning of the key, by which people name it.';
COMMENT ON COLUMN api_keys.digest IS 'A digest of the whole key, by which requests find it.';
COMMENT ON COLUMN api_keys.all_clients IS 'Whether the key reaches all clients of its partner; else those of api_key_clients.';
COMMENT ON COLUMN api_keys.networks IS 'The networks that the key may be used from; empty for everywhere.';
COMMENT ON COLUMN api_keys.demo IS 'A key of the demonstration, whose text is published.';

CREATE TABLE api_key_clients (
    key_id    uuid NOT NULL REFERENCES api_keys ON DELETE CASCADE,
    client_id uuid NOT NULL,
    PRIMARY KEY (key_id, client_id)
);
COMMENT ON TABLE api_key_clients IS 'The clients that a key without access to all of them reaches.';

CREATE TABLE idempotency_records (
    key_id          uuid NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    request_hash    bytea NOT NULL,
    status          smallint NOT NULL,
    body            bytea NOT NULL,
    seal_id         uuid,
    sealed_body     bytea,
    created_at      timestamptz NOT NULL,
    PRIMARY KEY (key_id, idempotency_key)
);
COMMENT ON TABLE idempotency_records IS 'The outcomes of writes that carried an Idempotency-Key, for a day.';
COMMENT ON COLUMN idempotency_records.status IS
    'The status of the answer; 0 while the request is under way and works outside of a transaction.';
COMMENT ON COLUMN idempotency_records.seal_id IS 'What sealed_body is sealed for.';
COMMENT ON COLUMN idempotency_records.sealed_body IS 'The body of an answer that holds a secret, sealed; body is empty then.';
CREATE INDEX idempotency_records_by_age ON idempotency_records (created_at);
COMMENT ON INDEX idempotency_records_by_age IS 'Deletes records that have expired.';
CREATE INDEX idempotency_records_sealed ON idempotency_records (seal_id) WHERE sealed_body IS NOT NULL;
COMMENT ON INDEX idempotency_records_sealed IS 'Seals bodies again with a new encryption key.';

CREATE TABLE audit_entries (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          timestamptz NOT NULL,
    partner_id  uuid NOT NULL,
    key_id      uuid NOT NULL,
    key_prefix  text COLLATE "C" NOT NULL,
    address     inet,
    os_user     text,
    sudo_user   text,
    operation   text NOT NULL,
    method      text NOT NULL,
    path        text NOT NULL,
    object_kind text,
    object_id   text,
    fields      text[],
    client_id   uuid,
    user_id     uuid,
    request_id  text NOT NULL
);
COMMENT ON TABLE audit_entries IS
    'Who changed what: an entry for each write that succeeded, for 400 days. It refers to no table, so that it outlives what it names.';
COMMENT ON COLUMN audit_entries.os_user IS 'Who ran the command, of an entry of a command; sudo_user is who became that user.';
COMMENT ON COLUMN audit_entries.object_id IS 'The object that was written, as v2 shows its id.';
COMMENT ON COLUMN audit_entries.fields IS 'The fields that the request gave.';
CREATE INDEX audit_entries_by_time ON audit_entries (at, id);
COMMENT ON INDEX audit_entries_by_time IS 'The command audit, and the deletion of old entries.';
CREATE INDEX audit_entries_by_client ON audit_entries (client_id, at, id) WHERE client_id IS NOT NULL;
COMMENT ON INDEX audit_entries_by_client IS 'The command audit, of one client.';
CREATE INDEX audit_entries_by_key ON audit_entries (key_prefix, at, id);
COMMENT ON INDEX audit_entries_by_key IS 'The command audit, of one key.';

-- subject: Clients

CREATE TABLE clients (
    id                   uuid PRIMARY KEY,
    partner_id           uuid NOT NULL REFERENCES partners,
    name                 text NOT NULL,
    name_key             text COLLATE "C" NOT NULL,
    industry             text,
    external_id          text,
    dark_web_monitoring  boolean NOT NULL DEFAULT true,
    directory_sync       text CHECK (directory_sync IN ('microsoft', 'google')),
    phishing_categories  text[],
    framework_ids        text[] NOT NULL DEFAULT '{}',
    users_active         integer NOT NULL DEFAULT 0,
    users_inactive       integer NOT NULL DEFAULT 0,
    average_score        integer NOT NULL DEFAULT 750,
    high_risk_users      integer NOT NULL DEFAULT 0,
    overdue_users        integer NOT NULL DEFAULT 0,
    on_track_rate        double precision NOT NULL DEFAULT 100,
    click_rate_90d       double precision NOT NULL DEFAULT 0,
    report_rate_90d      double precision NOT NULL DEFAULT 0,
    click_rate_365d      double precision NOT NULL DEFAULT 0,
    click_rate_total     double precision NOT NULL DEFAULT 0,
    summarized_at        timestamptz NOT NULL,
    refresh_until        timestamptz NOT NULL DEFAULT '-infinity',
    training_reminded_on date,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    archived_at          timestamptz
);
COMMENT ON TABLE clients IS
    'The organizations that partners manage, the tenants. One row is all that a read of a client needs: the columns from average_score to click_rate_total are its summary, made again when it is older than a few minutes.';
COMMENT ON COLUMN clients.external_id IS 'The partner''s own identifier, which several clients may share.';
COMMENT ON COLUMN clients.phishing_categories IS 'The categories of templates that its users may be sent; null for all.';
COMMENT ON COLUMN clients.framework_ids IS 'The frameworks that are assigned to it, without doubles.';
COMMENT ON COLUMN clients.users_active IS 'Stored count, as users_inactive is.';
COMMENT ON COLUMN clients.summarized_at IS 'As of when the summary is.';
COMMENT ON COLUMN clients.refresh_until IS
    'Until when the summary is refreshed in the background before it is stale: a read that finds it stale moves this.';
COMMENT ON COLUMN clients.training_reminded_on IS 'The day on which the whole client was reminded of training last: once a day.';
CREATE UNIQUE INDEX clients_name_unique ON clients (partner_id, name_key) WHERE archived_at IS NULL;
COMMENT ON INDEX clients_name_unique IS 'A name is free again once its client is archived.';
CREATE INDEX clients_by_name ON clients (partner_id, name_key, id) WHERE archived_at IS NULL;
COMMENT ON INDEX clients_by_name IS 'The list by name.';
CREATE INDEX clients_by_created ON clients (partner_id, created_at, id) WHERE archived_at IS NULL;
COMMENT ON INDEX clients_by_created IS 'The list, oldest first.';
CREATE INDEX clients_by_score ON clients (partner_id, average_score, id) WHERE archived_at IS NULL;
COMMENT ON INDEX clients_by_score IS 'The list by score.';
CREATE INDEX clients_by_external_id ON clients (partner_id, external_id)
    WHERE archived_at IS NULL AND external_id IS NOT NULL;
COMMENT ON INDEX clients_by_external_id IS 'The list''s filter external_id.';
CREATE INDEX clients_by_summary ON clients (partner_id, summarized_at) WHERE archived_at IS NULL;
COMMENT ON INDEX clients_by_summary IS 'The stale summaries of a page, before it is read.';

CREATE TABLE client_risks (
    client_id     uuid PRIMARY KEY REFERENCES clients,
    grades        jsonb NOT NULL,
    factor_totals integer[] NOT NULL,
    factor_users  integer[] NOT NULL
) WITH (fillfactor = 50);
COMMENT ON TABLE client_risks IS 'What a client''s risk is made of, stored with its summary so that both are of one moment.';
COMMENT ON COLUMN client_risks.grades IS 'The active users by role and grade, with the sum of their scores.';
COMMENT ON COLUMN client_risks.factor_totals IS 'What each factor adds up to, in the order of the model''s list of factors.';
COMMENT ON COLUMN client_risks.factor_users IS 'For how many users each factor is not 0, in the same order.';

CREATE TABLE risk_history (
    client_id     uuid NOT NULL REFERENCES clients,
    day           date NOT NULL,
    average_score integer NOT NULL,
    active_users  integer,
    PRIMARY KEY (client_id, day)
);
COMMENT ON TABLE risk_history IS 'A client''s average score by day.';
COMMENT ON COLUMN risk_history.active_users IS 'How many active users there were; null for days before they were counted.';

CREATE TABLE admins (
    id            uuid PRIMARY KEY,
    partner_id    uuid NOT NULL REFERENCES partners,
    client_id     uuid REFERENCES clients,
    email         text COLLATE "C" NOT NULL,
    name          text NOT NULL,
    role          text NOT NULL CHECK (role IN ('owner', 'admin', 'viewer')),
    last_login_at timestamptz,
    created_at    timestamptz NOT NULL
);
COMMENT ON TABLE admins IS 'Admins of the dashboard.';
COMMENT ON COLUMN admins.client_id IS 'Null for admins of the whole partner.';
CREATE UNIQUE INDEX admins_client_email_unique ON admins (client_id, email) WHERE client_id IS NOT NULL;
COMMENT ON INDEX admins_client_email_unique IS 'An address is one admin of a client; also the check of an invite.';
CREATE INDEX admins_by_client ON admins (client_id, created_at, id) WHERE client_id IS NOT NULL;
COMMENT ON INDEX admins_by_client IS 'The list of a client''s admins.';
CREATE INDEX admins_by_partner ON admins (partner_id, created_at, id) WHERE client_id IS NULL;
COMMENT ON INDEX admins_by_partner IS 'The list of a partner''s admins.';

CREATE TABLE admin_invites (
    client_id   uuid NOT NULL REFERENCES clients,
    id          uuid NOT NULL,
    partner_id  uuid,
    email       text COLLATE "C" NOT NULL,
    role        text NOT NULL CHECK (role IN ('admin', 'viewer')),
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    accepted_at timestamptz,
    PRIMARY KEY (client_id, id)
);
COMMENT ON TABLE admin_invites IS 'Invitations to be a client''s admin.';
COMMENT ON COLUMN admin_invites.partner_id IS 'The partner for whose limit the invite counts.';
CREATE INDEX admin_invites_by_email ON admin_invites (client_id, email, expires_at);
COMMENT ON INDEX admin_invites_by_email IS 'Whether an address has an open invite.';
CREATE INDEX admin_invites_by_client ON admin_invites (client_id, created_at);
COMMENT ON INDEX admin_invites_by_client IS 'The limit of a client''s invites within a time.';
CREATE INDEX admin_invites_by_partner ON admin_invites (partner_id, created_at) WHERE partner_id IS NOT NULL;
COMMENT ON INDEX admin_invites_by_partner IS 'The limit of a partner''s invites within a time.';

-- subject: Users

CREATE TABLE groups (
    client_id  uuid NOT NULL REFERENCES clients,
    id         uuid NOT NULL,
    name       text NOT NULL,
    manual     boolean NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (client_id, id)
);
COMMENT ON TABLE groups IS 'Groups of users: the one that is kept by hand, and those of the client''s directory.';
CREATE UNIQUE INDEX groups_manual_unique ON groups (client_id) WHERE manual;
COMMENT ON INDEX groups_manual_unique IS 'A client has one group that is kept by hand.';
CREATE UNIQUE INDEX groups_id_unique ON groups (id);
COMMENT ON INDEX groups_id_unique IS 'Imports, which name an object by its id alone.';

CREATE TABLE users (
    client_id            uuid NOT NULL REFERENCES clients,
    id                   uuid NOT NULL,
    email                text COLLATE "C" NOT NULL,
    first_name           text NOT NULL,
    last_name            text NOT NULL,
    name_key             text COLLATE "C" NOT NULL,
    department           text,
    job_title            text,
    manager_email        text,
    status               text NOT NULL CHECK (status IN ('active', 'inactive')),
    role                 text NOT NULL CHECK (role IN ('admin', 'executive', 'hr', 'finance', 'standard')),
    preferred_language   text NOT NULL CHECK (preferred_language IN ('en', 'es', 'fr-ca')),
    source               text NOT NULL CHECK (source IN ('microsoft', 'google', 'manual', 'api')),
    group_id             uuid,
    overrides            text[] NOT NULL DEFAULT '{}',
    score                integer NOT NULL,
    next_due_on          date,
    next_course_id       uuid,
    phished_sent         integer NOT NULL DEFAULT 0,
    phished_clicked      integer NOT NULL DEFAULT 0,
    phished_sent_year    integer NOT NULL DEFAULT 0,
    phished_clicked_year integer NOT NULL DEFAULT 0,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    PRIMARY KEY (client_id, id),
    CONSTRAINT users_id_unique UNIQUE (id),
    CONSTRAINT users_email_unique UNIQUE (client_id, email),
    FOREIGN KEY (client_id, group_id) REFERENCES groups (client_id, id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);
COMMENT ON TABLE users IS
    'The people who are trained. The columns from score to phished_clicked_year are stored where lists read them, and kept by the transactions that move them. Vacuumed early: what is counted or skipped on an index alone reads the pages written since.';
COMMENT ON COLUMN users.name_key IS 'Of first and last name.';
COMMENT ON COLUMN users.overrides IS 'The fields that were set by hand, which a directory sync leaves alone.';
COMMENT ON COLUMN users.score IS 'The risk score; user_risks says what it is made of.';
COMMENT ON COLUMN users.next_due_on IS 'The earliest due date of an incomplete assignment; overdue once it has passed.';
COMMENT ON COLUMN users.next_course_id IS 'The course of that assignment.';
COMMENT ON COLUMN users.phished_sent IS 'Simulated mails that were sent, ever; phished_clicked of them were clicked.';
COMMENT ON COLUMN users.phished_sent_year IS 'The same within the last 365 days, as is phished_clicked_year.';
CREATE INDEX users_by_created ON users (client_id, created_at, id) INCLUDE (name_key, email, status, score);
COMMENT ON INDEX users_by_created IS 'The list, oldest first. A search reads what it compares here, and of the table only what it shows.';
CREATE INDEX users_by_status_created ON users (client_id, status, created_at, id);
COMMENT ON INDEX users_by_status_created IS 'The list''s filter status.';
CREATE INDEX users_by_score ON users (client_id, score, id);
COMMENT ON INDEX users_by_score IS 'The list by score, and its filters of scores.';
CREATE INDEX users_by_updated ON users (client_id, updated_at);
COMMENT ON INDEX users_by_updated IS 'The list''s filter updated_since.';
CREATE INDEX users_by_due ON users (client_id, coalesce(next_due_on, 'infinity')) INCLUDE (next_due_on);
COMMENT ON INDEX users_by_due IS
    'The list''s filter overdue. The column is included as well, so that its users are counted on the index alone.';
CREATE INDEX users_by_group ON users (client_id, group_id, created_at, id) WHERE status = 'active';
COMMENT ON INDEX users_by_group IS 'A policy''s or a framework''s audience, where that is a group.';
CREATE INDEX users_by_email ON users USING hash (email);
COMMENT ON INDEX users_by_email IS 'Users of all clients by their address.';
CREATE INDEX users_for_summary ON users (client_id, score) INCLUDE (next_due_on, role) WHERE status = 'active';
COMMENT ON INDEX users_for_summary IS 'What a client''s summary is made of, on the index alone.';

CREATE TABLE user_risks (
    client_id                  uuid NOT NULL,
    user_id                    uuid NOT NULL,
    model                      smallint NOT NULL,
    baseline                   smallint NOT NULL,
    deltas                     smallint[] NOT NULL,
    courses_completed          integer NOT NULL,
    phishing_clicks            integer NOT NULL,
    phishing_reports           integer NOT NULL,
    credential_submissions     integer NOT NULL,
    attachments_opened         integer NOT NULL,
    real_phish_reported        integer NOT NULL,
    password_breaches_active   integer NOT NULL,
    password_breaches_resolved integer NOT NULL,
    pii_breaches               integer NOT NULL,
    basic_breaches             integer NOT NULL,
    dormant_on_training        boolean NOT NULL,
    computed_on                date NOT NULL,
    computed_at                timestamptz NOT NULL,
    PRIMARY KEY (client_id, user_id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
) WITH (fillfactor = 50);
COMMENT ON TABLE user_risks IS
    'What a user''s score is made of. The daily refresh writes every row anew: on pages that are half full the new one fits beside the old one, and the index keeps its entry.';
COMMENT ON COLUMN user_risks.model IS 'The version of the risk model.';
COMMENT ON COLUMN user_risks.deltas IS 'Points by factor, in the order of the model''s list of factors.';
COMMENT ON COLUMN user_risks.courses_completed IS 'This and the counts that follow are of the last year.';

CREATE TABLE collections (
    client_id    uuid NOT NULL REFERENCES clients,
    id           uuid NOT NULL,
    name         text NOT NULL,
    name_key     text COLLATE "C" NOT NULL,
    description  text,
    member_count integer NOT NULL DEFAULT 0,
    created_by   text NOT NULL CHECK (created_by IN ('dashboard', 'api')),
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (client_id, id),
    CONSTRAINT collections_name_unique UNIQUE (client_id, name_key)
);
COMMENT ON TABLE collections IS 'Sets of users that a partner makes.';
COMMENT ON COLUMN collections.member_count IS 'Stored count of collection_members.';
CREATE INDEX collections_by_created ON collections (client_id, created_at, id);
COMMENT ON INDEX collections_by_created IS 'The list.';
CREATE UNIQUE INDEX collections_id_unique ON collections (id);
COMMENT ON INDEX collections_id_unique IS 'Imports, which name an object by its id alone.';

CREATE TABLE collection_members (
    client_id     uuid NOT NULL,
    collection_id uuid NOT NULL,
    user_id       uuid NOT NULL,
    added_at      timestamptz NOT NULL,
    PRIMARY KEY (client_id, collection_id, user_id),
    FOREIGN KEY (client_id, collection_id) REFERENCES collections (client_id, id) ON DELETE CASCADE,
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
COMMENT ON TABLE collection_members IS 'The users of each collection.';
CREATE INDEX collection_members_by_user ON collection_members (client_id, user_id, collection_id);
COMMENT ON INDEX collection_members_by_user IS 'The collections of a user.';
CREATE INDEX collection_members_by_added ON collection_members (client_id, collection_id, added_at, user_id);
COMMENT ON INDEX collection_members_by_added IS 'The list of members.';

-- subject: Training

CREATE TABLE courses (
    id             uuid PRIMARY KEY,
    title          text NOT NULL,
    titles         jsonb NOT NULL DEFAULT '{}',
    renewal_months integer NOT NULL DEFAULT 12,
    languages      text[] NOT NULL DEFAULT '{en,es,fr-ca}',
    created_at     timestamptz NOT NULL
);
COMMENT ON TABLE courses IS 'The courses of the service, of all partners. Their ids are fixed, so that every installation speaks of the same ones.';
COMMENT ON COLUMN courses.titles IS 'The titles in other languages, by language.';
COMMENT ON COLUMN courses.renewal_months IS 'After how many months a completed course is assigned in a further round.';
INSERT INTO courses (id, title, created_at) VALUES
    ('019b7740-0000-7000-8000-000000000001', 'Security awareness foundations', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000002', 'Recognizing phishing', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000003', 'Passwords and multi-factor authentication', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000004', 'Safe browsing and downloads', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000005', 'Working securely away from the office', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000006', 'Reporting an incident', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000007', 'Handling health information', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000008', 'Handling cardholder data', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-000000000009', 'Privacy and personal data', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-00000000000a', 'Wire fraud and payment approval', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-00000000000b', 'Protecting employee records', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-00000000000c', 'Threats to executives', '2026-01-01T00:00:00Z'),
    ('019b7740-0000-7000-8000-00000000000d', 'Administering systems securely', '2026-01-01T00:00:00Z');

CREATE TABLE default_program (
    position       integer PRIMARY KEY,
    course_id      uuid NOT NULL REFERENCES courses,
    due_after_days integer NOT NULL
);
COMMENT ON TABLE default_program IS 'The program that a new client starts with.';
INSERT INTO default_program (position, course_id, due_after_days) VALUES
    (1, '019b7740-0000-7000-8000-000000000001', 14),
    (2, '019b7740-0000-7000-8000-000000000002', 44),
    (3, '019b7740-0000-7000-8000-000000000003', 74),
    (4, '019b7740-0000-7000-8000-000000000004', 104),
    (5, '019b7740-0000-7000-8000-000000000005', 134),
    (6, '019b7740-0000-7000-8000-000000000006', 164);

CREATE TABLE program_courses (
    client_id      uuid NOT NULL REFERENCES clients,
    position       integer NOT NULL CHECK (position > 0),
    course_id      uuid NOT NULL REFERENCES courses,
    due_after_days integer NOT NULL,
    PRIMARY KEY (client_id, position)
);
COMMENT ON TABLE program_courses IS 'The program of a client: its courses in their order.';
COMMENT ON COLUMN program_courses.due_after_days IS 'Counted from when the user is enrolled.';

CREATE TABLE assignments (
    client_id     uuid NOT NULL,
    user_id       uuid NOT NULL,
    course_id     uuid NOT NULL REFERENCES courses,
    round         smallint NOT NULL DEFAULT 1,
    superseded    boolean NOT NULL DEFAULT false,
    position      integer NOT NULL,
    from_program  boolean NOT NULL DEFAULT false,
    direct        boolean NOT NULL DEFAULT false,
    frameworks    uuid[] NOT NULL DEFAULT '{}',
    assigned_at   timestamptz NOT NULL,
    given_at      timestamptz,
    due_on        date NOT NULL,
    started_at    timestamptz,
    completed_at  timestamptz,
    overdue_noted boolean NOT NULL DEFAULT false,
    updated_at    timestamptz,
    PRIMARY KEY (client_id, user_id, course_id, round),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
COMMENT ON TABLE assignments IS 'Training that users were given. A course whose renewal is due is assigned in a further round.';
COMMENT ON COLUMN assignments.superseded IS 'Whether a later round of the course follows: a user''s training shows the last one only.';
COMMENT ON COLUMN assignments.position IS 'The place in the user''s list: that of the program, or 1000 and above.';
COMMENT ON COLUMN assignments.from_program IS 'Why the course is assigned: from_program, direct (by a request or by having been taken), frameworks, or several.';
COMMENT ON COLUMN assignments.frameworks IS 'The framework assignments that ask for the course.';
COMMENT ON COLUMN assignments.assigned_at IS 'As shown. It may lie before given_at, which is when the row was made by the service''s clock.';
COMMENT ON COLUMN assignments.overdue_noted IS 'Whether the event that it is overdue was written.';
COMMENT ON COLUMN assignments.updated_at IS 'When it, or its place in the list, changed last; null if it has not changed since it was given.';
CREATE INDEX assignments_open ON assignments (client_id, user_id, due_on, position) INCLUDE (course_id)
    WHERE completed_at IS NULL;
COMMENT ON INDEX assignments_open IS 'The next due course of a user.';
CREATE INDEX assignments_open_by_due ON assignments (due_on, client_id, user_id) WHERE completed_at IS NULL;
COMMENT ON INDEX assignments_open_by_due IS 'The assignments that become overdue on a day.';
CREATE INDEX assignments_to_note ON assignments (due_on) WHERE completed_at IS NULL AND NOT overdue_noted;
COMMENT ON INDEX assignments_to_note IS 'The overdue assignments whose event is to be written.';
CREATE INDEX assignments_by_assigned ON assignments (client_id, assigned_at, user_id, course_id)
    INCLUDE (position, due_on, completed_at, given_at, updated_at) WHERE NOT superseded;
COMMENT ON INDEX assignments_by_assigned IS
    'The list of a client''s training. It includes what filters compare, so that rows that they leave out are not read.';
CREATE INDEX assignments_by_course ON assignments (client_id, course_id, assigned_at, user_id) WHERE NOT superseded;
COMMENT ON INDEX assignments_by_course IS 'The list''s filter course_id.';
CREATE INDEX assignments_open_by_assigned ON assignments (client_id, assigned_at, user_id, course_id)
    INCLUDE (position, due_on, given_at, updated_at)
    WHERE NOT superseded AND completed_at IS NULL;
COMMENT ON INDEX assignments_open_by_assigned IS 'The list''s filters of what is assigned or overdue.';
CREATE INDEX assignments_by_completion_week
    ON assignments (client_id, date_trunc('week', completed_at AT TIME ZONE 'UTC'), assigned_at, user_id, course_id)
    INCLUDE (position, due_on, completed_at, given_at, updated_at)
    WHERE NOT superseded AND completed_at IS NOT NULL;
COMMENT ON INDEX assignments_by_completion_week IS
    'The list''s filter of when a course was completed: each week in the order of the list. All that a page shows is included.';
CREATE INDEX assignments_by_due_week
    ON assignments (client_id, date_trunc('week', due_on::timestamp), assigned_at, user_id, course_id)
    INCLUDE (position, due_on, given_at, updated_at)
    WHERE NOT superseded AND completed_at IS NULL;
COMMENT ON INDEX assignments_by_due_week IS 'What became overdue, for the list''s filter updated_since; the first that is assigned.';
CREATE INDEX assignments_by_change_week
    ON assignments (client_id, date_trunc('week', greatest(assigned_at, given_at, completed_at, updated_at) AT TIME ZONE 'UTC'),
        assigned_at, user_id, course_id)
    INCLUDE (position, due_on, completed_at, given_at, updated_at)
    WHERE NOT superseded;
COMMENT ON INDEX assignments_by_change_week IS
    'The list''s filter updated_since: each week in the order of the list. All that a page shows is included.';

CREATE VIEW user_training AS
    SELECT client_id, user_id, course_id, round, position, assigned_at, due_on, completed_at,
        row_number() OVER (PARTITION BY client_id, user_id ORDER BY position, course_id) AS place, given_at, updated_at
    FROM (
        SELECT DISTINCT ON (client_id, user_id, course_id) client_id, user_id, course_id, round, position, assigned_at, due_on,
            completed_at, given_at, updated_at
        FROM assignments ORDER BY client_id, user_id, course_id, round DESC
    ) AS latest;
COMMENT ON VIEW user_training IS
    'The last round of every course that a user was given, and its place in the user''s list, from 1. A condition on client_id and user_id is applied before places are counted.';

CREATE TABLE waiting_assignments (
    client_id  uuid NOT NULL,
    user_id    uuid NOT NULL,
    course_id  uuid NOT NULL,
    due_on     date NOT NULL,
    notify     boolean NOT NULL,
    direct     boolean NOT NULL DEFAULT true,
    frameworks uuid[] NOT NULL DEFAULT '{}',
    asked_at   timestamptz NOT NULL,
    PRIMARY KEY (client_id, user_id, course_id)
);
COMMENT ON TABLE waiting_assignments IS
    'Users of a large audience who are to be given a course. The request counts them; the background gives them the course, a batch in each transaction, and deletes their rows in it.';
COMMENT ON COLUMN waiting_assignments.notify IS 'Whether they are invited by mail.';
COMMENT ON COLUMN waiting_assignments.direct IS 'Why the course is to be given, as frameworks: see assignments.';

-- subject: Frameworks

CREATE TABLE framework_courses (
    framework_id   text NOT NULL,
    course_id      uuid NOT NULL REFERENCES courses,
    role           text CHECK (role IN ('admin', 'executive', 'hr', 'finance')),
    due_after_days integer NOT NULL,
    PRIMARY KEY (framework_id, course_id)
);
COMMENT ON TABLE framework_courses IS 'The courses that a framework asks of its audience.';
COMMENT ON COLUMN framework_courses.role IS 'Whom the course is for: the users of one role; null for everybody.';
INSERT INTO framework_courses (framework_id, course_id, role, due_after_days) VALUES
    ('hipaa', '019b7740-0000-7000-8000-000000000007', NULL, 30),
    ('hipaa', '019b7740-0000-7000-8000-00000000000b', NULL, 30),
    ('pci_dss', '019b7740-0000-7000-8000-000000000008', NULL, 30),
    ('iso_27001', '019b7740-0000-7000-8000-000000000009', NULL, 30),
    ('soc2', '019b7740-0000-7000-8000-000000000009', NULL, 30),
    ('ftc_safeguards', '019b7740-0000-7000-8000-00000000000a', NULL, 30),
    ('nydfs', '019b7740-0000-7000-8000-00000000000a', NULL, 30),
    ('nydfs', '019b7740-0000-7000-8000-00000000000c', NULL, 30),
    ('gdpr', '019b7740-0000-7000-8000-000000000009', NULL, 30);
INSERT INTO framework_courses (framework_id, course_id, role, due_after_days)
    SELECT framework, course::uuid, role, 30
    FROM unnest('{nist_csf,nist_800_53,cis_v8,cmmc_l2}'::text[]) AS f (framework)
    CROSS JOIN (VALUES
        ('019b7740-0000-7000-8000-000000000001', NULL),
        ('019b7740-0000-7000-8000-00000000000a', 'finance'),
        ('019b7740-0000-7000-8000-00000000000b', 'hr'),
        ('019b7740-0000-7000-8000-00000000000c', 'executive'),
        ('019b7740-0000-7000-8000-00000000000d', 'admin')) AS c (course, role);

CREATE TABLE framework_assignments (
    client_id     uuid NOT NULL REFERENCES clients,
    id            uuid NOT NULL,
    framework_id  text NOT NULL,
    audience_type text NOT NULL CHECK (audience_type IN ('all', 'group', 'collection')),
    audience_id   uuid,
    training      boolean NOT NULL DEFAULT true,
    phishing      boolean NOT NULL DEFAULT true,
    policies      boolean NOT NULL DEFAULT false,
    reporting     boolean NOT NULL DEFAULT true,
    requirements  jsonb NOT NULL DEFAULT '[]',
    met           smallint NOT NULL DEFAULT 0,
    total         smallint NOT NULL DEFAULT 0,
    evaluated_at  timestamptz NOT NULL DEFAULT 'epoch',
    created_at    timestamptz NOT NULL,
    changed_at    timestamptz,
    PRIMARY KEY (client_id, id)
);
COMMENT ON TABLE framework_assignments IS 'Frameworks that clients follow, and how far each was met when it was evaluated last.';
COMMENT ON COLUMN framework_assignments.audience_id IS 'The group or collection; null for all users.';
COMMENT ON COLUMN framework_assignments.training IS 'The modules of the framework that apply: training, phishing, policies, reporting.';
COMMENT ON COLUMN framework_assignments.requirements IS 'The requirements as the interface shows them, in the order of the catalogue.';
COMMENT ON COLUMN framework_assignments.evaluated_at IS 'The epoch for never; -infinity for to be evaluated at once.';
COMMENT ON COLUMN framework_assignments.changed_at IS 'When what is shown changed last, apart from evaluated_at; null before the first evaluation.';
CREATE UNIQUE INDEX framework_assignments_unique
    ON framework_assignments (client_id, framework_id, audience_type, coalesce(audience_id, client_id));
COMMENT ON INDEX framework_assignments_unique IS 'An audience has a framework once.';
CREATE INDEX framework_assignments_by_created ON framework_assignments (client_id, created_at, id);
COMMENT ON INDEX framework_assignments_by_created IS 'The list.';
CREATE UNIQUE INDEX framework_assignments_id_unique ON framework_assignments (id);
COMMENT ON INDEX framework_assignments_id_unique IS 'Imports, which name an object by its id alone.';

-- subject: Policies

CREATE TABLE policies (
    client_id               uuid NOT NULL REFERENCES clients,
    id                      uuid NOT NULL,
    title                   text NOT NULL,
    description             text,
    version                 integer NOT NULL DEFAULT 1,
    scope_type              text NOT NULL CHECK (scope_type IN ('tenant', 'user_container', 'collection')),
    scope_id                uuid NOT NULL,
    requires_acknowledgment boolean NOT NULL,
    renewal_period_days     integer NOT NULL DEFAULT 365,
    reviewed_at             timestamptz NOT NULL,
    published_at            timestamptz,
    reminded_on             date,
    audience_count          integer NOT NULL DEFAULT 0,
    acknowledged_count      integer NOT NULL DEFAULT 0,
    counted_until           timestamptz NOT NULL DEFAULT '-infinity',
    created_at              timestamptz NOT NULL,
    updated_at              timestamptz NOT NULL,
    archived_at             timestamptz,
    PRIMARY KEY (client_id, id)
);
COMMENT ON TABLE policies IS 'Policies that users sign.';
COMMENT ON COLUMN policies.scope_id IS
    'The group or collection of the scope; the client itself for a tenant''s. It stays when that is deleted, and the audience is empty then.';
COMMENT ON COLUMN policies.published_at IS 'When a later version became the current one, which unsigned everybody; null for the first.';
COMMENT ON COLUMN policies.reminded_on IS 'The day of the last reminders: there is one round a day.';
COMMENT ON COLUMN policies.audience_count IS 'Of how many the policy asks a signature; acknowledged_count of them signed. As a read counted them last.';
COMMENT ON COLUMN policies.counted_until IS
    'Until when the counts hold: when the first signature lapses. Whatever moves them sets -infinity, and the next read counts.';
CREATE INDEX policies_by_created ON policies (client_id, created_at, id) WHERE archived_at IS NULL;
COMMENT ON INDEX policies_by_created IS 'The list.';
CREATE UNIQUE INDEX policies_id_unique ON policies (id);
COMMENT ON INDEX policies_id_unique IS 'Signals, which name a policy without its client.';

CREATE TABLE policy_signatures (
    client_id   uuid NOT NULL,
    policy_id   uuid NOT NULL,
    user_id     uuid NOT NULL,
    version     integer NOT NULL,
    signed_at   timestamptz NOT NULL,
    recorded_at timestamptz,
    PRIMARY KEY (client_id, policy_id, version, user_id) INCLUDE (signed_at),
    FOREIGN KEY (client_id, policy_id) REFERENCES policies (client_id, id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
COMMENT ON TABLE policy_signatures IS 'Who signed which version of a policy. Whether a user signed is found on the key''s index alone.';
COMMENT ON COLUMN policy_signatures.recorded_at IS 'When the signature came to be known, which may be long after signed_at; null for as it was signed.';
CREATE INDEX policy_signatures_by_time ON policy_signatures (client_id, policy_id, version, signed_at);
COMMENT ON INDEX policy_signatures_by_time IS 'The signatures that lapse next, and those that lapsed last.';
CREATE INDEX policy_signatures_by_user ON policy_signatures (client_id, user_id, signed_at);
COMMENT ON INDEX policy_signatures_by_user IS 'Reports, which read user by user.';

-- subject: Simulated phishing and reported mails

CREATE TABLE phishing_templates (
    id           uuid PRIMARY KEY,
    name         text NOT NULL,
    language     text NOT NULL CHECK (language IN ('en', 'es', 'fr-ca')),
    category     text NOT NULL,
    difficulty   smallint NOT NULL DEFAULT 3 CHECK (difficulty BETWEEN 1 AND 6),
    subject      text NOT NULL,
    from_address text NOT NULL,
    html         text NOT NULL,
    body         text NOT NULL,
    indicators   jsonb NOT NULL DEFAULT '[]',
    landing      text NOT NULL DEFAULT 'lesson' CHECK (landing IN ('lesson', 'form')),
    own          boolean NOT NULL DEFAULT true,
    created_at   timestamptz NOT NULL,
    changed_at   timestamptz
);
COMMENT ON TABLE phishing_templates IS 'Templates of simulated mails, of all partners.';
COMMENT ON COLUMN phishing_templates.indicators IS 'The signs of phishing that the lesson points out.';
COMMENT ON COLUMN phishing_templates.landing IS 'The page that a click leads to.';
COMMENT ON COLUMN phishing_templates.own IS 'It comes with the service, and each version brings it up to date; else it was imported.';
COMMENT ON COLUMN phishing_templates.changed_at IS 'When an import changed it last; null for never.';
CREATE UNIQUE INDEX phishing_templates_imported_unique ON phishing_templates (name, language) WHERE NOT own;
COMMENT ON INDEX phishing_templates_imported_unique IS 'An imported template is found by name and language.';

CREATE TABLE template_uses (
    client_id   uuid NOT NULL REFERENCES clients,
    template_id uuid NOT NULL REFERENCES phishing_templates,
    used        integer NOT NULL,
    PRIMARY KEY (client_id, template_id)
);
COMMENT ON TABLE template_uses IS 'How many mails were made for a client from each template, by which the next one is chosen.';

CREATE TABLE phishing_results (
    client_id                uuid NOT NULL,
    id                       uuid NOT NULL,
    user_id                  uuid NOT NULL,
    template_id              uuid NOT NULL REFERENCES phishing_templates,
    status                   text NOT NULL CHECK (status IN
        ('scheduled', 'sent', 'opened', 'attachment_opened', 'clicked', 'credentials_submitted', 'failed')),
    reported                 boolean NOT NULL DEFAULT false,
    automated                boolean NOT NULL DEFAULT false,
    automated_reason         text,
    send_at                  timestamptz NOT NULL,
    sent_at                  timestamptz,
    opened_at                timestamptz,
    attachment_opened_at     timestamptz,
    clicked_at               timestamptz,
    credentials_submitted_at timestamptz,
    reported_at              timestamptz,
    failed_at                timestamptz,
    failure                  text,
    created_at               timestamptz NOT NULL,
    updated_at               timestamptz NOT NULL,
    PRIMARY KEY (client_id, id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id),
    CONSTRAINT phishing_results_outcome_check CHECK ((failed_at IS NULL) = (failure IS NULL)
        AND (failed_at IS NOT NULL) = (status = 'failed') AND (failed_at IS NULL OR sent_at IS NULL))
);
COMMENT ON TABLE phishing_results IS 'Simulated mails, and how far each got. A status only moves forward, but for a failed mail that is tried again.';
COMMENT ON COLUMN phishing_results.automated IS
    'A mail scanner followed a link, for automated_reason. It moves no status and no time, and counts nowhere.';
COMMENT ON COLUMN phishing_results.send_at IS 'When it is to be sent.';
COMMENT ON COLUMN phishing_results.failed_at IS 'When it became certain that it will not be sent; failure is why.';
CREATE UNIQUE INDEX phishing_results_id_unique ON phishing_results (id);
COMMENT ON INDEX phishing_results_id_unique IS 'Signals and tracked links, which name a result without its client.';
CREATE INDEX phishing_results_by_created ON phishing_results (client_id, created_at, id);
COMMENT ON INDEX phishing_results_by_created IS 'The list.';
CREATE INDEX phishing_results_by_status ON phishing_results (client_id, status, created_at, id);
COMMENT ON INDEX phishing_results_by_status IS 'The list''s filter status.';
CREATE INDEX phishing_results_by_updated ON phishing_results (client_id, updated_at, id);
COMMENT ON INDEX phishing_results_by_updated IS 'The list''s filter updated_since.';
CREATE INDEX phishing_results_by_sent ON phishing_results (client_id, sent_at, id);
COMMENT ON INDEX phishing_results_by_sent IS 'The list''s filters of when mails were sent, and reports of a period.';
CREATE INDEX phishing_results_by_user ON phishing_results (client_id, user_id, sent_at);
COMMENT ON INDEX phishing_results_by_user IS 'A user''s results, risk, and the templates the user had.';
CREATE INDEX phishing_results_falls ON phishing_results (client_id, sent_at, user_id)
    WHERE clicked_at IS NOT NULL OR credentials_submitted_at IS NOT NULL OR attachment_opened_at IS NOT NULL;
COMMENT ON INDEX phishing_results_falls IS 'The users who fell for mails repeatedly.';
CREATE INDEX phishing_results_waiting ON phishing_results (send_at) WHERE sent_at IS NULL AND failed_at IS NULL;
COMMENT ON INDEX phishing_results_waiting IS 'The mails that wait, for the operator.';
CREATE INDEX phishing_results_failed ON phishing_results (failed_at) WHERE failed_at IS NOT NULL;
COMMENT ON INDEX phishing_results_failed IS 'The mails that failed, for the operator.';

CREATE TABLE phishing_days (
    client_id             uuid NOT NULL REFERENCES clients,
    day                   date NOT NULL,
    sent                  integer NOT NULL DEFAULT 0,
    opened                integer NOT NULL DEFAULT 0,
    clicked               integer NOT NULL DEFAULT 0,
    reported              integer NOT NULL DEFAULT 0,
    credentials_submitted integer NOT NULL DEFAULT 0,
    attachments_opened    integer NOT NULL DEFAULT 0,
    PRIMARY KEY (client_id, day)
);
COMMENT ON TABLE phishing_days IS 'Stored counts of the simulated mails that a client''s users were sent on a day, and how many of them got how far since.';
COMMENT ON COLUMN phishing_days.opened IS 'Mails that got at least so far: one that was clicked counts as opened too.';

CREATE TABLE reported_emails (
    client_id      uuid NOT NULL,
    id             uuid NOT NULL,
    user_id        uuid NOT NULL,
    message_id     text COLLATE "C" NOT NULL,
    subject        text NOT NULL,
    sender         text NOT NULL,
    classification text NOT NULL CHECK (classification IN ('phishing', 'spam', 'safe', 'pending')),
    mailbox_action text CHECK (mailbox_action IN ('none', 'moved_to_junk', 'deleted')),
    reported_at    timestamptz NOT NULL,
    classified_at  timestamptz,
    updated_at     timestamptz NOT NULL,
    PRIMARY KEY (client_id, id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
COMMENT ON TABLE reported_emails IS 'Real mails that users reported.';
COMMENT ON COLUMN reported_emails.message_id IS 'The Message-ID without its brackets.';
CREATE UNIQUE INDEX reported_emails_of_user ON reported_emails (client_id, user_id, message_id);
COMMENT ON INDEX reported_emails_of_user IS 'A user reports a message once.';
CREATE INDEX reported_emails_by_message ON reported_emails (message_id, client_id);
COMMENT ON INDEX reported_emails_by_message IS 'Classifications, which name the message alone.';
CREATE INDEX reported_emails_by_report ON reported_emails (client_id, reported_at, id);
COMMENT ON INDEX reported_emails_by_report IS 'The list of a client.';
CREATE INDEX reported_emails_by_updated ON reported_emails (client_id, updated_at);
COMMENT ON INDEX reported_emails_by_updated IS 'The list''s filter updated_since.';
CREATE INDEX reported_emails_by_user ON reported_emails (client_id, user_id, reported_at);
COMMENT ON INDEX reported_emails_by_user IS 'The list of a user.';

CREATE TABLE email_classifications (
    message_id     text COLLATE "C" NOT NULL,
    client_id      uuid NOT NULL,
    classification text NOT NULL CHECK (classification IN ('phishing', 'spam', 'safe')),
    mailbox_action text CHECK (mailbox_action IN ('none', 'moved_to_junk', 'deleted')),
    classified_at  timestamptz NOT NULL,
    PRIMARY KEY (message_id, client_id)
);
COMMENT ON TABLE email_classifications IS
    'The latest classification of a message. It may come before the message is reported, and concerns who reports it later too.';
COMMENT ON COLUMN email_classifications.client_id IS 'The zero UUID for all clients.';
CREATE INDEX email_classifications_by_age ON email_classifications USING brin (classified_at);
COMMENT ON INDEX email_classifications_by_age IS 'Deletes old ones.';

-- subject: Exposures

CREATE TABLE breaches (
    name         text COLLATE "C" PRIMARY KEY,
    title        text NOT NULL,
    domain       text,
    breach_on    date,
    severity     text NOT NULL CHECK (severity IN ('critical', 'high', 'medium', 'low')),
    data_classes text[] NOT NULL,
    sensitive    boolean NOT NULL DEFAULT false,
    spam_list    boolean NOT NULL DEFAULT false
);
COMMENT ON TABLE breaches IS 'The catalogue of breaches, of all partners.';
COMMENT ON COLUMN breaches.sensitive IS 'A mark of the breach as a whole, as spam_list is: they rate it beside its data classes.';

CREATE TABLE exposures (
    client_id     uuid NOT NULL,
    user_id       uuid NOT NULL,
    breach_name   text COLLATE "C" NOT NULL REFERENCES breaches,
    id            uuid NOT NULL GENERATED ALWAYS AS (md5(user_id::text || breach_name)::uuid) STORED,
    severity      text NOT NULL CHECK (severity IN ('critical', 'high', 'medium', 'low')),
    data_classes  text[] NOT NULL,
    found         boolean NOT NULL DEFAULT true,
    first_seen_at timestamptz NOT NULL,
    notified_at   timestamptz,
    resolved_at   timestamptz,
    updated_at    timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (client_id, user_id, breach_name),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
COMMENT ON TABLE exposures IS 'Users'' addresses in breaches.';
COMMENT ON COLUMN exposures.id IS 'Breaks ties in the order of lists. The interface does not show it.';
COMMENT ON COLUMN exposures.found IS
    'Whether a signal said that it was found. One that is known by its resolving alone is described by the catalogue, and announced once it is found.';
CREATE INDEX exposures_by_seen ON exposures (client_id, first_seen_at, id);
COMMENT ON INDEX exposures_by_seen IS 'The list.';
CREATE INDEX exposures_by_updated ON exposures (client_id, updated_at);
COMMENT ON INDEX exposures_by_updated IS 'The list''s filter updated_since.';
CREATE INDEX exposures_by_breach ON exposures (breach_name);
COMMENT ON INDEX exposures_by_breach IS 'The users whom a change of a breach concerns.';
CREATE INDEX exposures_for_summary ON exposures (client_id, user_id) INCLUDE (severity, first_seen_at, resolved_at);
COMMENT ON INDEX exposures_for_summary IS 'A client''s summary and a user''s counts, on the index alone.';

-- subject: Reports

CREATE TABLE reports (
    client_id    uuid NOT NULL REFERENCES clients,
    id           uuid NOT NULL,
    type         text NOT NULL,
    format       text NOT NULL CHECK (format IN ('pdf', 'xlsx')),
    status       text NOT NULL CHECK (status IN ('pending', 'ready', 'failed')),
    period_start date,
    period_end   date,
    mailed_for   date,
    lease        uuid,
    due_at       timestamptz,
    tries        smallint NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (client_id, id),
    CONSTRAINT reports_period_check CHECK ((period_start IS NULL) = (period_end IS NULL) AND period_start <= period_end)
);
COMMENT ON TABLE reports IS 'Reports, and the queue of those that are to be made. Their files are in a store.';
COMMENT ON COLUMN reports.mailed_for IS
    'The month (its first day) for which the service made the report of itself, to mail it to the client''s admins; null for one that a caller asked for.';
COMMENT ON COLUMN reports.lease IS 'The lease of the process that makes it.';
COMMENT ON COLUMN reports.due_at IS 'When the next try is due, or the lease ends; null, due at once, before the first claim.';
CREATE INDEX reports_by_created ON reports (client_id, created_at, id);
COMMENT ON INDEX reports_by_created IS 'The list, and the limit of reports within a time.';
CREATE INDEX reports_by_age ON reports (created_at);
COMMENT ON INDEX reports_by_age IS 'Deletes reports that have expired.';
CREATE INDEX reports_pending ON reports (created_at) WHERE status = 'pending';
COMMENT ON INDEX reports_pending IS 'How many reports wait since when, and those that waited too long.';
CREATE INDEX reports_asked ON reports (coalesce(due_at, created_at)) WHERE status = 'pending' AND mailed_for IS NULL;
COMMENT ON INDEX reports_asked IS 'Claims of reports that callers asked for.';
CREATE INDEX reports_own ON reports (coalesce(due_at, created_at)) WHERE status = 'pending' AND mailed_for IS NOT NULL;
COMMENT ON INDEX reports_own IS 'Claims of the service''s own reports.';
CREATE INDEX reports_failed ON reports (updated_at) WHERE status = 'failed';
COMMENT ON INDEX reports_failed IS 'Metrics of reports that failed within a week.';
CREATE UNIQUE INDEX reports_mailed_unique ON reports (client_id, mailed_for) WHERE mailed_for IS NOT NULL;
COMMENT ON INDEX reports_mailed_unique IS 'A month''s report is made once.';

CREATE TABLE monthly_mailings (
    month     date PRIMARY KEY,
    queued_at timestamptz NOT NULL
);
COMMENT ON TABLE monthly_mailings IS 'The months (their first days) whose reports of the month before were queued.';

-- subject: Mails

CREATE TABLE mail_requests (
    client_id     uuid NOT NULL,
    id            uuid NOT NULL,
    type          text NOT NULL,
    user_id       uuid,
    invite_id     uuid,
    policy_id     uuid,
    course_id     uuid REFERENCES courses,
    round         smallint,
    result_id     uuid,
    breach_name   text COLLATE "C",
    admin_id      uuid,
    report_id     uuid,
    due_at        timestamptz,
    created_at    timestamptz NOT NULL,
    sent_at       timestamptz,
    failed_at     timestamptz,
    failure       text,
    suppressed_at timestamptz,
    PRIMARY KEY (client_id, id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id),
    FOREIGN KEY (client_id, invite_id) REFERENCES admin_invites (client_id, id),
    FOREIGN KEY (client_id, policy_id) REFERENCES policies (client_id, id),
    CONSTRAINT mail_requests_type_check CHECK (type IN ('welcome', 'admin-invite', 'training-invite',
        'policy-reminder', 'certificate', 'phish-reminder', 'exposure-notice', 'monthly-report', 'training-reminder')),
    CONSTRAINT mail_requests_check CHECK (
        (type = 'admin-invite') = (invite_id IS NOT NULL)
        AND (type IN ('admin-invite', 'monthly-report')) = (user_id IS NULL)
        AND (type IN ('training-invite', 'certificate')) = (course_id IS NOT NULL)
        AND (type = 'certificate') = (round IS NOT NULL)
        AND (type = 'phish-reminder') = (result_id IS NOT NULL)
        AND (type = 'exposure-notice') = (breach_name IS NOT NULL)
        AND (type = 'monthly-report') = (admin_id IS NOT NULL AND report_id IS NOT NULL)),
    CONSTRAINT mail_requests_outcome_check CHECK (
        (failed_at IS NULL) = (failure IS NULL) AND num_nonnulls(sent_at, failed_at, suppressed_at) <= 1)
);
COMMENT ON TABLE mail_requests IS
    'Mails that an operation or the service asked for, but for simulated ones, and what became of each. user_id, invite_id and the columns up to report_id are whom and what it is about, by its type.';
COMMENT ON COLUMN mail_requests.round IS 'The round of the course that a certificate is for.';
COMMENT ON COLUMN mail_requests.due_at IS 'When it is to be sent first; null for at once.';
COMMENT ON COLUMN mail_requests.failed_at IS 'When it became certain that it cannot be delivered or is no longer wanted; failure is why.';
COMMENT ON COLUMN mail_requests.suppressed_at IS 'When it was due while its client had switched its kind off.';
CREATE UNIQUE INDEX mail_requests_certificate_unique ON mail_requests (client_id, user_id, course_id, round)
    WHERE type = 'certificate';
COMMENT ON INDEX mail_requests_certificate_unique IS 'A round''s certificate is sent once.';
CREATE UNIQUE INDEX mail_requests_reminder_unique ON mail_requests (client_id, result_id) WHERE type = 'phish-reminder';
COMMENT ON INDEX mail_requests_reminder_unique IS 'A simulated mail that was fallen for has one reminder.';
CREATE UNIQUE INDEX mail_requests_notice_unique ON mail_requests (client_id, user_id, breach_name)
    WHERE type = 'exposure-notice';
COMMENT ON INDEX mail_requests_notice_unique IS 'A user is told of an exposure once.';
CREATE UNIQUE INDEX mail_requests_report_unique ON mail_requests (client_id, report_id, admin_id)
    WHERE type = 'monthly-report';
COMMENT ON INDEX mail_requests_report_unique IS 'An admin is sent a month''s report once.';
CREATE UNIQUE INDEX mail_requests_training_unique
    ON mail_requests (client_id, user_id, date(created_at AT TIME ZONE 'UTC')) WHERE type = 'training-reminder';
COMMENT ON INDEX mail_requests_training_unique IS 'A user is reminded of training once a day.';
CREATE INDEX mail_requests_waiting ON mail_requests (coalesce(due_at, created_at))
    WHERE sent_at IS NULL AND failed_at IS NULL AND suppressed_at IS NULL;
COMMENT ON INDEX mail_requests_waiting IS 'The mails that wait, for the operator.';
CREATE INDEX mail_requests_failed ON mail_requests (failed_at) WHERE failed_at IS NOT NULL;
COMMENT ON INDEX mail_requests_failed IS 'The mails that failed, for the operator.';

CREATE TABLE partner_mails (
    partner_id    uuid NOT NULL REFERENCES partners,
    id            uuid NOT NULL,
    kind          text NOT NULL,
    cause         text COLLATE "C" NOT NULL,
    admin_id      uuid NOT NULL,
    recipient     text COLLATE "C" NOT NULL,
    notice        jsonb NOT NULL,
    created_at    timestamptz NOT NULL,
    sent_at       timestamptz,
    failed_at     timestamptz,
    failure       text,
    suppressed_at timestamptz,
    PRIMARY KEY (partner_id, id),
    CONSTRAINT partner_mails_once UNIQUE (partner_id, kind, cause, recipient),
    CONSTRAINT partner_mails_outcome_check CHECK (
        (failed_at IS NULL) = (failure IS NULL) AND num_nonnulls(sent_at, failed_at, suppressed_at) <= 1)
);
COMMENT ON TABLE partner_mails IS 'Mails of the service to the owners and admins of a partner, and what became of each.';
COMMENT ON COLUMN partner_mails.cause IS 'What the mail tells of: an address gets one mail of a kind and cause.';
COMMENT ON COLUMN partner_mails.notice IS 'What the text of the mail is made from.';
COMMENT ON COLUMN partner_mails.suppressed_at IS 'When it was due while the partner had its kind switched off.';
CREATE INDEX partner_mails_unsent ON partner_mails (created_at) WHERE sent_at IS NULL AND suppressed_at IS NULL;
COMMENT ON INDEX partner_mails_unsent IS 'The mails that wait or failed, for the operator.';

CREATE TABLE outbox (
    client_id  uuid NOT NULL,
    id         uuid NOT NULL,
    kind       text NOT NULL CHECK (kind IN ('mail', 'simulation', 'partner')),
    urgency    smallint NOT NULL CHECK (urgency IN (1, 2)),
    due_at     timestamptz NOT NULL,
    attempts   integer NOT NULL DEFAULT 0,
    lease      uuid,
    scanned    text,
    maybe_sent boolean NOT NULL DEFAULT false,
    PRIMARY KEY (client_id, id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
COMMENT ON TABLE outbox IS
    'The mails that wait to be sent: rows of mail_requests, phishing_results and partner_mails that are neither sent nor failed. A row belongs to whoever wrote its lease, until due_at; without one, or after that, to no one.';
COMMENT ON COLUMN outbox.client_id IS 'Of a row of partner_mails the partner''s id.';
COMMENT ON COLUMN outbox.id IS 'That of the row of mail_requests, phishing_results or partner_mails, by kind.';
COMMENT ON COLUMN outbox.urgency IS '1 for mail that somebody waits for, 2 for the rest.';
COMMENT ON COLUMN outbox.due_at IS 'When it is tried next; of a leased row, when the lease ends.';
COMMENT ON COLUMN outbox.attempts IS 'How many tries failed.';
COMMENT ON COLUMN outbox.scanned IS 'How a mail scanner was recognized that followed a link while the mail was handed over.';
COMMENT ON COLUMN outbox.maybe_sent IS
    'Whether the mail may have gone out although it is not marked as sent: it cannot be cancelled any more.';
CREATE INDEX outbox_by_due ON outbox (due_at);
COMMENT ON INDEX outbox_by_due IS 'When the next mail is due, and since when the oldest one is.';
CREATE INDEX outbox_by_urgency ON outbox (urgency, client_id, due_at);
COMMENT ON INDEX outbox_by_urgency IS 'Claims, which go from client to client in turns, urgent mails first.';

CREATE TABLE sent_emails (
    client_id    uuid NOT NULL,
    user_id      uuid NOT NULL,
    id           uuid NOT NULL,
    sent_at      timestamptz NOT NULL,
    from_email   text NOT NULL,
    subject      text NOT NULL,
    send_method  text NOT NULL CHECK (send_method IN ('microsoft-api', 'smtp', 'gmail-api')),
    message_type text NOT NULL,
    PRIMARY KEY (client_id, user_id, id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
COMMENT ON TABLE sent_emails IS 'The mails that a user was sent.';
CREATE INDEX sent_emails_by_time ON sent_emails (client_id, user_id, sent_at DESC, id DESC);
COMMENT ON INDEX sent_emails_by_time IS 'The list, newest first.';

CREATE TABLE mail_switches (
    client_id  uuid NOT NULL REFERENCES clients,
    kind       text NOT NULL CHECK (kind IN ('certificate', 'phish-reminder', 'exposure-notice', 'monthly-report')),
    enabled    boolean NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (client_id, kind)
);
COMMENT ON TABLE mail_switches IS 'Which kinds of the service''s own mail a client wants, where that is not the default.';

-- subject: Directories

CREATE TABLE directory_connections (
    client_id   uuid PRIMARY KEY REFERENCES clients,
    provider    text NOT NULL CHECK (provider IN ('microsoft', 'google')),
    settings    jsonb NOT NULL,
    credentials bytea NOT NULL,
    position    text,
    next_run_at timestamptz NOT NULL,
    synced_at   timestamptz,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);
COMMENT ON TABLE directory_connections IS 'Clients'' directories.';
COMMENT ON COLUMN directory_connections.settings IS 'What is no secret.';
COMMENT ON COLUMN directory_connections.credentials IS 'Sealed.';
COMMENT ON COLUMN directory_connections.position IS 'Where the next run begins to read; null for the beginning.';
COMMENT ON COLUMN directory_connections.synced_at IS 'When a run completed last.';
CREATE INDEX directory_connections_by_next ON directory_connections (next_run_at);
COMMENT ON INDEX directory_connections_by_next IS 'The directories whose next run is due.';

CREATE TABLE directory_accounts (
    client_id uuid NOT NULL REFERENCES clients,
    object_id text COLLATE "C" NOT NULL,
    account   jsonb NOT NULL,
    user_id   uuid,
    unsettled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (client_id, object_id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
COMMENT ON TABLE directory_accounts IS
    'The accounts of a client''s directory as runs have applied them, also those without a user: a later delta names only what changed.';
COMMENT ON COLUMN directory_accounts.unsettled IS 'It was skipped, or its address could not be followed: every run tries again.';
CREATE UNIQUE INDEX directory_accounts_by_user ON directory_accounts (client_id, user_id) WHERE user_id IS NOT NULL;
COMMENT ON INDEX directory_accounts_by_user IS 'A user has one account.';
CREATE INDEX directory_accounts_unsettled ON directory_accounts (client_id, object_id) WHERE unsettled;
COMMENT ON INDEX directory_accounts_unsettled IS 'The accounts that a run tries again.';

CREATE TABLE sync_runs (
    client_id        uuid NOT NULL REFERENCES clients,
    id               uuid NOT NULL,
    status           text NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed')),
    trigger          text NOT NULL CHECK (trigger IN ('api', 'schedule', 'command')),
    force            boolean NOT NULL DEFAULT false,
    queued_at        timestamptz NOT NULL,
    started_at       timestamptz,
    finished_at      timestamptz,
    updated_at       timestamptz NOT NULL,
    created          integer NOT NULL DEFAULT 0,
    updated          integer NOT NULL DEFAULT 0,
    updated_inactive integer NOT NULL DEFAULT 0,
    deactivated      integer NOT NULL DEFAULT 0,
    merged           integer NOT NULL DEFAULT 0,
    unchanged        integer NOT NULL DEFAULT 0,
    skipped          jsonb NOT NULL DEFAULT '[]',
    error            text,
    stage            text NOT NULL DEFAULT 'reading' CHECK (stage IN ('reading', 'judging', 'applying')),
    position         text NOT NULL DEFAULT '',
    from_start       boolean NOT NULL DEFAULT false,
    whole            boolean NOT NULL DEFAULT false,
    started_over     boolean NOT NULL DEFAULT false,
    lease            uuid,
    leased_until     timestamptz,
    deaths           integer NOT NULL DEFAULT 0,
    PRIMARY KEY (client_id, id)
);
COMMENT ON TABLE sync_runs IS 'The runs that sync users with a directory, and the queue of those that are open.';
COMMENT ON COLUMN sync_runs.force IS 'Passes the guard against many deactivations.';
COMMENT ON COLUMN sync_runs.updated_inactive IS 'How many of the updated users have accounts that are disabled or the like.';
COMMENT ON COLUMN sync_runs.stage IS 'Accounts are read into sync_accounts, judged as a whole, and then applied.';
COMMENT ON COLUMN sync_runs.position IS 'Where reading continues; once it is complete, where the next run begins.';
COMMENT ON COLUMN sync_runs.from_start IS 'Whether it reads the whole directory; whole once it has.';
COMMENT ON COLUMN sync_runs.started_over IS 'Whether the directory refused its position, and it began again.';
COMMENT ON COLUMN sync_runs.deaths IS 'How many processes died in a row that worked on it, without any progress between them.';
CREATE UNIQUE INDEX sync_runs_open ON sync_runs (client_id) WHERE status IN ('queued', 'running');
COMMENT ON INDEX sync_runs_open IS 'A client has one open run.';
CREATE INDEX sync_runs_waiting ON sync_runs (queued_at) WHERE status IN ('queued', 'running');
COMMENT ON INDEX sync_runs_waiting IS 'Claims of open runs.';
CREATE INDEX sync_runs_by_queued ON sync_runs (client_id, queued_at, id);
COMMENT ON INDEX sync_runs_by_queued IS 'The list.';
CREATE INDEX sync_runs_by_age ON sync_runs (queued_at);
COMMENT ON INDEX sync_runs_by_age IS 'Deletes old runs.';

CREATE TABLE sync_accounts (
    client_id uuid NOT NULL,
    object_id text COLLATE "C" NOT NULL,
    account   jsonb,
    phase     smallint NOT NULL,
    PRIMARY KEY (client_id, object_id)
);
COMMENT ON TABLE sync_accounts IS 'What the open run of a client has read.';
COMMENT ON COLUMN sync_accounts.account IS 'Null where nothing changed.';
COMMENT ON COLUMN sync_accounts.phase IS
    'The order of applying: 0 for nothing to do, 1 for accounts whose users leave, 2 for users to update, 3 for addresses that another user gives up first, 4 for accounts without a user.';
CREATE INDEX sync_accounts_by_phase ON sync_accounts (client_id, phase, object_id) WHERE phase > 0;
COMMENT ON INDEX sync_accounts_by_phase IS 'The next batch to apply.';

-- subject: Signals and imports

CREATE TABLE signals (
    id       text COLLATE "C" PRIMARY KEY,
    type     text NOT NULL,
    at       timestamptz NOT NULL,
    taken_at timestamptz NOT NULL
);
COMMENT ON TABLE signals IS
    'The signals that were taken, each in the transaction that applied it, so that it is taken once. A row is deleted once its signal can no longer come again.';
CREATE INDEX signals_by_age ON signals USING brin (taken_at);
COMMENT ON INDEX signals_by_age IS 'Deletes old ones.';

CREATE UNLOGGED TABLE import_lines (
    kind      integer NOT NULL,
    round     integer NOT NULL,
    line      bigint NOT NULL,
    object    uuid,
    client_id uuid,
    user_id   uuid,
    outcome   integer NOT NULL,
    text      text NOT NULL,
    PRIMARY KEY (kind, round, line)
);
COMMENT ON TABLE import_lines IS
    'The lines of an import, until all that they refer to is applied. Not logged: an import that was cut short begins with its file.';
COMMENT ON COLUMN import_lines.kind IS 'The place of their kind in the order of applying.';
COMMENT ON COLUMN import_lines.round IS 'In which of the kind''s rounds it is tried.';
COMMENT ON COLUMN import_lines.line IS 'Its number in the input.';
COMMENT ON COLUMN import_lines.object IS 'The object that it is of; null where that does not move the order.';
COMMENT ON COLUMN import_lines.client_id IS 'Where it belongs, as user_id.';
COMMENT ON COLUMN import_lines.outcome IS 'What became of it so far.';

-- subject: Events and webhooks

CREATE TABLE events (
    id              uuid NOT NULL,
    client_id       uuid NOT NULL,
    type            text NOT NULL,
    user_id         uuid,
    object_id       uuid,
    created_at      timestamptz NOT NULL,
    recorded_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    postponed_until timestamptz,
    PRIMARY KEY (recorded_at, id)
);
COMMENT ON TABLE events IS
    'The outbox of events: written in the transaction of their change, deleted when they are published. One index, whose new entries all go to its end, is what an event adds to a write.';
COMMENT ON COLUMN events.object_id IS 'What it is about beside the client and the user, such as the course that was completed.';
COMMENT ON COLUMN events.recorded_at IS 'When it was written, by the server''s clock; see webhooks.active_since.';
COMMENT ON COLUMN events.postponed_until IS 'Until when it waits after it could not be published; null if it does not wait.';

CREATE TABLE event_head (
    single   boolean PRIMARY KEY DEFAULT true CHECK (single),
    position bigint NOT NULL
);
COMMENT ON TABLE event_head IS
    'The position of the last published event, in one row. Who publishes locks it until the transaction ends, so that positions become visible in their order and without a gap.';
INSERT INTO event_head (position) VALUES (0);

CREATE TABLE published_events (
    partner_id uuid NOT NULL REFERENCES partners,
    position   bigint NOT NULL,
    client_id  uuid NOT NULL REFERENCES clients,
    id         uuid NOT NULL,
    type       text NOT NULL,
    created_at timestamptz NOT NULL,
    body       text NOT NULL,
    PRIMARY KEY (partner_id, position)
);
COMMENT ON TABLE published_events IS 'Events as callers get them.';
COMMENT ON COLUMN published_events.body IS 'The whole event in JSON: the same bytes for every reader and every try.';
CREATE INDEX published_events_by_type ON published_events (partner_id, type, position);
COMMENT ON INDEX published_events_by_type IS 'The feed of some types.';
CREATE INDEX published_events_by_client ON published_events (client_id, position);
COMMENT ON INDEX published_events_by_client IS 'The feed of a key that reaches some clients.';
CREATE INDEX published_events_by_client_type ON published_events (client_id, type, position);
COMMENT ON INDEX published_events_by_client_type IS 'The feed of some types of some clients.';
CREATE INDEX published_events_by_age ON published_events (created_at);
COMMENT ON INDEX published_events_by_age IS 'Deletes old events.';

CREATE TABLE webhooks (
    partner_id       uuid NOT NULL REFERENCES partners,
    id               uuid NOT NULL,
    key_id           uuid NOT NULL REFERENCES api_keys,
    url              text NOT NULL,
    events           text[] NOT NULL,
    client_ids       uuid[] NOT NULL DEFAULT '{}',
    description      text,
    status           text NOT NULL CHECK (status IN ('active', 'paused', 'disabled')),
    active_since     timestamptz NOT NULL DEFAULT clock_timestamp(),
    secret           bytea NOT NULL,
    replaced_secret  bytea,
    replaced_until   timestamptz,
    last_delivery_at timestamptz,
    failing_since    timestamptz,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    PRIMARY KEY (partner_id, id),
    CONSTRAINT webhooks_id_unique UNIQUE (id)
);
COMMENT ON TABLE webhooks IS 'Subscriptions that events are delivered to.';
COMMENT ON COLUMN webhooks.key_id IS 'The key whose access the subscription has.';
COMMENT ON COLUMN webhooks.client_ids IS 'Narrows the access; empty for all that the key reaches.';
COMMENT ON COLUMN webhooks.active_since IS 'By the server''s clock: it gets the events that were recorded after that.';
COMMENT ON COLUMN webhooks.secret IS 'What deliveries are signed with, sealed. The one before, replaced_secret, signs too until replaced_until.';
COMMENT ON COLUMN webhooks.last_delivery_at IS 'When a delivery succeeded last.';
COMMENT ON COLUMN webhooks.failing_since IS 'Since when deliveries failed and none succeeded; null if the last one succeeded.';
CREATE INDEX webhooks_by_created ON webhooks (partner_id, created_at, id);
COMMENT ON INDEX webhooks_by_created IS 'The list.';

CREATE TABLE webhook_deliveries (
    webhook_id   uuid NOT NULL,
    id           uuid NOT NULL,
    partner_id   uuid NOT NULL,
    position     bigint NOT NULL,
    client_id    uuid NOT NULL,
    event_id     uuid NOT NULL,
    type         text NOT NULL,
    status       text NOT NULL DEFAULT 'waiting' CHECK (status IN ('waiting', 'succeeded', 'failed', 'dropped')),
    reason       text,
    created_at   timestamptz NOT NULL,
    queued_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    due_at       timestamptz NOT NULL,
    lease        uuid,
    first_try_at timestamptz,
    tries        jsonb NOT NULL DEFAULT '[]',
    PRIMARY KEY (webhook_id, id)
);
COMMENT ON TABLE webhook_deliveries IS 'An event on its way to one subscription, with its tries. A subscription that is deleted leaves its own to deleted_webhooks.';
COMMENT ON COLUMN webhook_deliveries.position IS 'Of the event''s row in published_events, as partner_id.';
COMMENT ON COLUMN webhook_deliveries.reason IS 'Why it was dropped.';
COMMENT ON COLUMN webhook_deliveries.queued_at IS
    'Since when it waits, by the server''s clock: one that waited while its subscription was not active is dropped, also once that is active again.';
COMMENT ON COLUMN webhook_deliveries.due_at IS 'Of a waiting one: when the next try is due or, where it is leased, when the lease ends.';
COMMENT ON COLUMN webhook_deliveries.tries IS 'A list of objects with at, status_code, duration_ms and response.';
CREATE INDEX webhook_deliveries_by_created ON webhook_deliveries (webhook_id, created_at, id);
COMMENT ON INDEX webhook_deliveries_by_created IS 'The list.';
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook_id, due_at) WHERE status = 'waiting';
COMMENT ON INDEX webhook_deliveries_due IS 'Claims, which go from subscription to subscription in turns.';
CREATE INDEX webhook_deliveries_leased ON webhook_deliveries (webhook_id, due_at)
    WHERE status = 'waiting' AND lease IS NOT NULL;
COMMENT ON INDEX webhook_deliveries_leased IS 'The tries under way, of which a subscription has few at a time.';
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (created_at);
COMMENT ON INDEX webhook_deliveries_by_age IS 'Deletes old deliveries.';

CREATE TABLE deleted_webhooks (
    id         uuid PRIMARY KEY,
    deleted_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE deleted_webhooks IS
    'Subscriptions whose deliveries are deleted in the background, a batch in each transaction. A row leaves when no delivery is left, and no transaction can be under way that makes one.';

-- subject: Cells and moves

CREATE TABLE cell (
    one        boolean PRIMARY KEY DEFAULT true CHECK (one),
    number     integer NOT NULL CHECK (number BETWEEN 0 AND count - 1),
    count      integer NOT NULL CHECK (count BETWEEN 2 AND 3844),
    public_url text,
    fixed_at   timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE cell IS
    'Which cell the database is of, in one row whose number and count never change; none where there is one installation.';
COMMENT ON COLUMN cell.public_url IS
    'Where links without a key begin, as the service was last started with: other cells send who follows an older link there.';

CREATE TABLE moves (
    partner_id uuid PRIMARY KEY,
    step       text NOT NULL CHECK (step IN ('copying', 'holding', 'handing', 'gone', 'cleaned', 'arriving', 'here')),
    cell       text NOT NULL,
    public_url text,
    began_at   timestamptz NOT NULL DEFAULT now(),
    held_until timestamptz,
    moved_at   timestamptz,
    keep_until timestamptz
);
COMMENT ON TABLE moves IS 'The partners that move to another cell or came from one. db/move describes the steps.';
COMMENT ON COLUMN moves.cell IS 'The other cell.';
COMMENT ON COLUMN moves.held_until IS 'Until when the partner''s writes are rejected in step holding.';
COMMENT ON COLUMN moves.keep_until IS 'Until when the rows of a partner that is gone are kept.';

CREATE TABLE resting_clients (
    client_id uuid PRIMARY KEY,
    until     timestamptz NOT NULL
);
COMMENT ON TABLE resting_clients IS 'The clients whose mails, events and deliveries wait while their partner moves.';

CREATE TABLE moved_keys (
    digest     bytea PRIMARY KEY,
    prefix     text NOT NULL,
    cell       text NOT NULL,
    partner_id uuid NOT NULL
);
COMMENT ON TABLE moved_keys IS 'The keys that moved away with their partner, for good, and the cell that they live in.';

-- subject: The service itself

CREATE TABLE secrets (
    name  text PRIMARY KEY,
    value bytea NOT NULL
);
COMMENT ON TABLE secrets IS 'What all processes on the database share: the secrets of cursors and of links, and a check of the encryption key.';

CREATE TABLE periodic_jobs (
    kind      text PRIMARY KEY,
    due_at    timestamptz NOT NULL,
    lease     uuid,
    failed_at timestamptz[] NOT NULL DEFAULT '{}'
);
COMMENT ON TABLE periodic_jobs IS 'What one of the processes does again and again.';
COMMENT ON COLUMN periodic_jobs.due_at IS 'When it is due, or its lease ends.';
COMMENT ON COLUMN periodic_jobs.failed_at IS 'When it failed within the last week.';

CREATE TABLE daily_refreshes (
    day         date PRIMARY KEY,
    finished_at timestamptz NOT NULL
);
COMMENT ON TABLE daily_refreshes IS 'The days whose daily refresh of scores is done.';

CREATE TABLE recounts (
    counter text COLLATE "C" PRIMARY KEY,
    until   timestamptz NOT NULL
);
COMMENT ON TABLE recounts IS
    'Stored counts that a process of an earlier version may miss after a migration: they are recounted until then, and once after that.';
COMMENT ON COLUMN recounts.counter IS 'The name of the count in db/doctor.';

CREATE FUNCTION uuid_v7(made_at timestamptz) RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS
    'SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM made_at) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), ''hex'')::uuid';
COMMENT ON FUNCTION uuid_v7 IS 'An id of version 7 for a row that a statement makes many of.';
