-- +goose Up
-- locks: none
-- The tables of the service. Tenant tables lead with client_id (clients and
-- admins with partner_id) in their keys and indexes, so that they can be
-- sharded by it. Texts that are sorted are compared by byte (COLLATE "C"); the
-- *_key columns hold what domain.SortKey makes of a name.

CREATE TABLE secrets (
    name  text PRIMARY KEY,
    value bytea NOT NULL
);

CREATE TABLE partners (
    id         uuid PRIMARY KEY,
    name       text NOT NULL,
    name_key   text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT partners_name_unique UNIQUE (name_key)
);

CREATE TABLE api_keys (
    id           uuid PRIMARY KEY,
    partner_id   uuid NOT NULL REFERENCES partners,
    name         text NOT NULL,
    prefix       text NOT NULL,
    digest       bytea NOT NULL,
    all_clients  boolean NOT NULL,
    scopes       text[] NOT NULL,
    demo         boolean NOT NULL DEFAULT false,
    expires_at   timestamptz,
    revoked_at   timestamptz,
    last_used_at timestamptz,
    created_at   timestamptz NOT NULL,
    CONSTRAINT api_keys_digest_unique UNIQUE (digest),
    CONSTRAINT api_keys_prefix_unique UNIQUE (prefix)
);

-- The clients that a key without access to all of them reaches.
CREATE TABLE api_key_clients (
    key_id    uuid NOT NULL REFERENCES api_keys ON DELETE CASCADE,
    client_id uuid NOT NULL,
    PRIMARY KEY (key_id, client_id)
);

-- The outcomes of POSTs that carried an Idempotency-Key, for a day.
CREATE TABLE idempotency_records (
    key_id       uuid NOT NULL,
    idempotency_key text COLLATE "C" NOT NULL,
    request_hash bytea NOT NULL,
    status       smallint NOT NULL,
    body         bytea NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (key_id, idempotency_key)
);
CREATE INDEX idempotency_records_by_age ON idempotency_records (created_at);

-- One row is all that a read of a client needs. The columns from
-- average_score to summarized_at are its summary: stored, and refreshed when
-- they are older than a few minutes.
CREATE TABLE clients (
    id                  uuid PRIMARY KEY,
    partner_id          uuid NOT NULL REFERENCES partners,
    name                text NOT NULL,
    name_key            text COLLATE "C" NOT NULL,
    industry            text,
    external_id         text,
    dark_web_monitoring boolean NOT NULL DEFAULT true,
    directory_sync      text CHECK (directory_sync IN ('microsoft', 'google')),
    framework_ids       text[] NOT NULL DEFAULT '{}',
    users_active        integer NOT NULL DEFAULT 0,
    users_inactive      integer NOT NULL DEFAULT 0,
    average_score       integer NOT NULL DEFAULT 750,
    high_risk_users     integer NOT NULL DEFAULT 0,
    overdue_users       integer NOT NULL DEFAULT 0,
    on_track_rate       double precision NOT NULL DEFAULT 100,
    click_rate_90d      double precision NOT NULL DEFAULT 0,
    report_rate_90d     double precision NOT NULL DEFAULT 0,
    click_rate_365d     double precision NOT NULL DEFAULT 0,
    click_rate_total    double precision NOT NULL DEFAULT 0,
    summarized_at       timestamptz NOT NULL,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    archived_at         timestamptz
);
CREATE UNIQUE INDEX clients_name_unique ON clients (partner_id, name_key) WHERE archived_at IS NULL;
CREATE INDEX clients_by_name    ON clients (partner_id, name_key, id) WHERE archived_at IS NULL;
CREATE INDEX clients_by_created ON clients (partner_id, created_at, id) WHERE archived_at IS NULL;
CREATE INDEX clients_by_score   ON clients (partner_id, average_score, id) WHERE archived_at IS NULL;
CREATE INDEX clients_by_summary ON clients (partner_id, summarized_at) WHERE archived_at IS NULL;

-- Dashboard admins: of the whole partner, or of one client.
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
CREATE UNIQUE INDEX admins_client_email_unique ON admins (client_id, email) WHERE client_id IS NOT NULL;
CREATE INDEX admins_by_client  ON admins (client_id, created_at, id) WHERE client_id IS NOT NULL;
CREATE INDEX admins_by_partner ON admins (partner_id, created_at, id) WHERE client_id IS NULL;

CREATE TABLE admin_invites (
    client_id   uuid NOT NULL REFERENCES clients,
    id          uuid NOT NULL,
    email       text COLLATE "C" NOT NULL,
    role        text NOT NULL CHECK (role IN ('admin', 'viewer')),
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    accepted_at timestamptz,
    PRIMARY KEY (client_id, id)
);
CREATE INDEX admin_invites_by_email ON admin_invites (client_id, email, expires_at);

-- Groups of users: one kept by hand, and those of the client's directory.
CREATE TABLE groups (
    client_id  uuid NOT NULL REFERENCES clients,
    id         uuid NOT NULL,
    name       text NOT NULL,
    manual     boolean NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (client_id, id)
);
CREATE UNIQUE INDEX groups_manual_unique ON groups (client_id) WHERE manual;

-- The columns from score to phished_clicked_year are stored where lists read
-- them, and kept by the transactions that move them.
CREATE TABLE users (
    client_id           uuid NOT NULL REFERENCES clients,
    id                  uuid NOT NULL,
    email               text COLLATE "C" NOT NULL,
    first_name          text NOT NULL,
    last_name           text NOT NULL,
    name_key            text COLLATE "C" NOT NULL,
    department          text,
    job_title           text,
    manager_email       text,
    status              text NOT NULL CHECK (status IN ('active', 'inactive')),
    role                text NOT NULL CHECK (role IN ('admin', 'executive', 'hr', 'finance', 'standard')),
    preferred_language  text NOT NULL CHECK (preferred_language IN ('en', 'es', 'fr-ca')),
    source              text NOT NULL CHECK (source IN ('microsoft', 'google', 'manual', 'api')),
    group_id            uuid,
    -- The fields that were set by hand, which a directory sync leaves alone.
    overrides           text[] NOT NULL DEFAULT '{}',
    score               integer NOT NULL,
    -- The earliest due date of an incomplete assignment, and its course.
    next_due_on         date,
    next_course_id      uuid,
    -- Simulated mails sent and clicked, ever and within the last 365 days.
    phished_sent         integer NOT NULL DEFAULT 0,
    phished_clicked      integer NOT NULL DEFAULT 0,
    phished_sent_year    integer NOT NULL DEFAULT 0,
    phished_clicked_year integer NOT NULL DEFAULT 0,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    PRIMARY KEY (client_id, id),
    CONSTRAINT users_id_unique UNIQUE (id),
    CONSTRAINT users_email_unique UNIQUE (client_id, email),
    FOREIGN KEY (client_id, group_id) REFERENCES groups (client_id, id)
);
CREATE INDEX users_by_created        ON users (client_id, created_at, id);
CREATE INDEX users_by_status_created ON users (client_id, status, created_at, id);
CREATE INDEX users_by_score          ON users (client_id, score, id);
CREATE INDEX users_by_updated        ON users (client_id, updated_at);
-- What a client's summary is made of, without a look at the table.
CREATE INDEX users_for_summary ON users (client_id, score) INCLUDE (next_due_on) WHERE status = 'active';

CREATE TABLE courses (
    id             uuid PRIMARY KEY,
    title          text NOT NULL,
    renewal_months integer NOT NULL DEFAULT 12,
    languages      text[] NOT NULL DEFAULT '{en,es,fr-ca}',
    created_at     timestamptz NOT NULL
);

-- The program of a client: its courses in their order, each due so many days
-- after a user is enrolled.
CREATE TABLE program_courses (
    client_id      uuid NOT NULL REFERENCES clients,
    position       integer NOT NULL CHECK (position > 0),
    course_id      uuid NOT NULL REFERENCES courses,
    due_after_days integer NOT NULL,
    PRIMARY KEY (client_id, position)
);

-- Training that users were given. A course whose renewal window ends is
-- assigned in a further round.
CREATE TABLE assignments (
    client_id    uuid NOT NULL,
    user_id      uuid NOT NULL,
    course_id    uuid NOT NULL REFERENCES courses,
    round        smallint NOT NULL DEFAULT 1,
    position     integer NOT NULL,
    -- The framework assignment that asked for it; null for the program's.
    framework_use_id uuid,
    assigned_at  timestamptz NOT NULL,
    due_on       date NOT NULL,
    completed_at timestamptz,
    PRIMARY KEY (client_id, user_id, course_id, round),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
CREATE INDEX assignments_open ON assignments (client_id, user_id, due_on, position) INCLUDE (course_id) WHERE completed_at IS NULL;
CREATE INDEX assignments_open_by_due ON assignments (due_on, client_id, user_id) WHERE completed_at IS NULL;

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
CREATE INDEX collections_by_created ON collections (client_id, created_at, id);

CREATE TABLE collection_members (
    client_id     uuid NOT NULL,
    collection_id uuid NOT NULL,
    user_id       uuid NOT NULL,
    added_at      timestamptz NOT NULL,
    PRIMARY KEY (client_id, collection_id, user_id),
    FOREIGN KEY (client_id, collection_id) REFERENCES collections (client_id, id) ON DELETE CASCADE,
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
CREATE INDEX collection_members_by_user  ON collection_members (client_id, user_id, collection_id);
CREATE INDEX collection_members_by_added ON collection_members (client_id, collection_id, added_at, user_id);

CREATE TABLE policies (
    client_id               uuid NOT NULL REFERENCES clients,
    id                      uuid NOT NULL,
    title                   text NOT NULL,
    description             text,
    version                 integer NOT NULL DEFAULT 1,
    scope_type              text NOT NULL CHECK (scope_type IN ('tenant', 'user_container', 'collection')),
    -- The group or collection of the scope; the client itself for a tenant's.
    -- It stays when that is deleted, and the audience is empty then.
    scope_id                uuid NOT NULL,
    requires_acknowledgment boolean NOT NULL,
    renewal_period_days     integer NOT NULL DEFAULT 365,
    reviewed_at             timestamptz NOT NULL,
    archived_at             timestamptz,
    created_at              timestamptz NOT NULL,
    updated_at              timestamptz NOT NULL,
    PRIMARY KEY (client_id, id)
);
CREATE INDEX policies_by_created ON policies (client_id, created_at, id) WHERE archived_at IS NULL;

CREATE TABLE policy_signatures (
    client_id uuid NOT NULL,
    policy_id uuid NOT NULL,
    user_id   uuid NOT NULL,
    version   integer NOT NULL,
    signed_at timestamptz NOT NULL,
    PRIMARY KEY (client_id, policy_id, version, user_id),
    FOREIGN KEY (client_id, policy_id) REFERENCES policies (client_id, id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);

CREATE TABLE phishing_templates (
    id           uuid PRIMARY KEY,
    name         text NOT NULL,
    language     text NOT NULL CHECK (language IN ('en', 'es', 'fr-ca')),
    category     text NOT NULL,
    subject      text NOT NULL,
    from_address text NOT NULL,
    html         text NOT NULL,
    body         text NOT NULL,
    created_at   timestamptz NOT NULL
);

-- Simulated mails and how far each got; statuses only move forward.
CREATE TABLE phishing_results (
    client_id                uuid NOT NULL,
    id                       uuid NOT NULL,
    user_id                  uuid NOT NULL,
    template_id              uuid NOT NULL REFERENCES phishing_templates,
    status                   text NOT NULL CHECK (status IN ('scheduled', 'sent', 'opened', 'attachment_opened', 'clicked', 'credentials_submitted')),
    reported                 boolean NOT NULL DEFAULT false,
    -- An event of a mail scanner is kept with its reason and counts nowhere.
    automated                boolean NOT NULL DEFAULT false,
    automated_reason         text,
    send_at                  timestamptz NOT NULL,
    sent_at                  timestamptz,
    opened_at                timestamptz,
    attachment_opened_at     timestamptz,
    clicked_at               timestamptz,
    credentials_submitted_at timestamptz,
    reported_at              timestamptz,
    created_at               timestamptz NOT NULL,
    updated_at               timestamptz NOT NULL,
    PRIMARY KEY (client_id, id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
CREATE INDEX phishing_results_by_user ON phishing_results (client_id, user_id, sent_at);
CREATE INDEX phishing_results_by_sent ON phishing_results (client_id, sent_at, id);

-- The simulated mails that a client's users were sent on one day (UTC), and
-- how many of them got how far since.
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

-- Real mails that users reported.
CREATE TABLE reported_emails (
    client_id      uuid NOT NULL,
    id             uuid NOT NULL,
    user_id        uuid NOT NULL,
    message_id     text NOT NULL,
    subject        text NOT NULL,
    sender         text NOT NULL,
    classification text NOT NULL CHECK (classification IN ('phishing', 'spam', 'safe', 'pending')),
    mailbox_action text CHECK (mailbox_action IN ('none', 'moved_to_junk', 'deleted')),
    reported_at    timestamptz NOT NULL,
    classified_at  timestamptz,
    PRIMARY KEY (client_id, id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);
CREATE INDEX reported_emails_by_user ON reported_emails (client_id, user_id, reported_at);

CREATE TABLE breaches (
    name         text COLLATE "C" PRIMARY KEY,
    title        text NOT NULL,
    domain       text,
    breach_on    date,
    severity     text NOT NULL CHECK (severity IN ('critical', 'high', 'medium', 'low')),
    data_classes text[] NOT NULL
);

CREATE TABLE exposures (
    client_id     uuid NOT NULL,
    user_id       uuid NOT NULL,
    breach_name   text COLLATE "C" NOT NULL REFERENCES breaches,
    severity      text NOT NULL CHECK (severity IN ('critical', 'high', 'medium', 'low')),
    data_classes  text[] NOT NULL,
    first_seen_at timestamptz NOT NULL,
    notified_at   timestamptz,
    resolved_at   timestamptz,
    PRIMARY KEY (client_id, user_id, breach_name),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);

CREATE TABLE framework_uses (
    client_id     uuid NOT NULL REFERENCES clients,
    id            uuid NOT NULL,
    framework_id  text NOT NULL,
    audience_type text NOT NULL CHECK (audience_type IN ('all', 'group', 'collection')),
    audience_id   uuid,
    training      boolean NOT NULL DEFAULT true,
    phishing      boolean NOT NULL DEFAULT true,
    policies      boolean NOT NULL DEFAULT false,
    reporting     boolean NOT NULL DEFAULT true,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (client_id, id)
);

-- The courses that a framework asks of its audience.
CREATE TABLE framework_courses (
    framework_id   text NOT NULL,
    course_id      uuid NOT NULL REFERENCES courses,
    due_after_days integer NOT NULL,
    PRIMARY KEY (framework_id, course_id)
);

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
CREATE INDEX sent_emails_by_time ON sent_emails (client_id, user_id, sent_at DESC, id DESC);

-- Mail that an operation asked for and that background work is to send.
CREATE TABLE mail_requests (
    client_id  uuid NOT NULL REFERENCES clients,
    id         uuid NOT NULL,
    type       text NOT NULL CHECK (type IN ('welcome', 'admin-invite')),
    user_id    uuid,
    invite_id  uuid,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (client_id, id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id),
    FOREIGN KEY (client_id, invite_id) REFERENCES admin_invites (client_id, id),
    CHECK ((type = 'welcome') = (user_id IS NOT NULL) AND (type = 'admin-invite') = (invite_id IS NOT NULL))
);

CREATE TABLE reports (
    client_id    uuid NOT NULL REFERENCES clients,
    id           uuid NOT NULL,
    type         text NOT NULL,
    format       text NOT NULL CHECK (format IN ('pdf', 'xlsx')),
    status       text NOT NULL CHECK (status IN ('pending', 'ready', 'failed')),
    period_start date,
    period_end   date,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    PRIMARY KEY (client_id, id)
);
CREATE INDEX reports_by_created ON reports (client_id, created_at, id);

-- What a user's score is made of: each factor's points and the year's counts.
-- users.score is the same score, where lists read it.
CREATE TABLE user_risks (
    client_id                   uuid NOT NULL,
    user_id                     uuid NOT NULL,
    model                       smallint NOT NULL,
    baseline                    smallint NOT NULL,
    -- Points by factor, in the order of the model's list of factors.
    deltas                      smallint[] NOT NULL,
    courses_completed           integer NOT NULL,
    phishing_clicks             integer NOT NULL,
    phishing_reports            integer NOT NULL,
    credential_submissions      integer NOT NULL,
    attachments_opened          integer NOT NULL,
    real_phish_reported         integer NOT NULL,
    password_breaches_active    integer NOT NULL,
    password_breaches_resolved  integer NOT NULL,
    pii_breaches                integer NOT NULL,
    basic_breaches              integer NOT NULL,
    dormant_on_training         boolean NOT NULL,
    computed_on                 date NOT NULL,
    computed_at                 timestamptz NOT NULL,
    PRIMARY KEY (client_id, user_id),
    FOREIGN KEY (client_id, user_id) REFERENCES users (client_id, id)
);

-- A client's average score by day (UTC).
CREATE TABLE risk_history (
    client_id     uuid NOT NULL REFERENCES clients,
    day           date NOT NULL,
    average_score integer NOT NULL,
    PRIMARY KEY (client_id, day)
);

-- What happened, written in the transaction of the change.
CREATE TABLE events (
    client_id  uuid NOT NULL REFERENCES clients,
    id         uuid NOT NULL,
    type       text NOT NULL,
    user_id    uuid,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (client_id, id)
);
CREATE INDEX events_by_age ON events (created_at);

-- The days whose daily refresh is done.
CREATE TABLE daily_refreshes (
    day         date PRIMARY KEY,
    finished_at timestamptz NOT NULL
);
