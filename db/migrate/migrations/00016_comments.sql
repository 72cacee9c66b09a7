-- +goose Up
-- locks: partners, SHARE UPDATE EXCLUSIVE, a moment
-- locks: api_keys, SHARE UPDATE EXCLUSIVE, a moment
-- locks: api_key_clients, SHARE UPDATE EXCLUSIVE, a moment
-- locks: idempotency_records, SHARE UPDATE EXCLUSIVE, a moment
-- locks: audit_entries, SHARE UPDATE EXCLUSIVE, a moment
-- locks: replaced_keys, SHARE UPDATE EXCLUSIVE, a moment
-- locks: brands, SHARE UPDATE EXCLUSIVE, a moment
-- locks: clients, SHARE UPDATE EXCLUSIVE, a moment
-- locks: client_risks, SHARE UPDATE EXCLUSIVE, a moment
-- locks: risk_history, SHARE UPDATE EXCLUSIVE, a moment
-- locks: admins, SHARE UPDATE EXCLUSIVE, a moment
-- locks: admin_invites, SHARE UPDATE EXCLUSIVE, a moment
-- locks: groups, SHARE UPDATE EXCLUSIVE, a moment
-- locks: users, SHARE UPDATE EXCLUSIVE, a moment
-- locks: user_risks, SHARE UPDATE EXCLUSIVE, a moment
-- locks: collections, SHARE UPDATE EXCLUSIVE, a moment
-- locks: courses, SHARE UPDATE EXCLUSIVE, a moment
-- locks: default_program, SHARE UPDATE EXCLUSIVE, a moment
-- locks: program_courses, SHARE UPDATE EXCLUSIVE, a moment
-- locks: assignments, SHARE UPDATE EXCLUSIVE, a moment
-- locks: waiting_assignments, SHARE UPDATE EXCLUSIVE, a moment
-- locks: framework_courses, SHARE UPDATE EXCLUSIVE, a moment
-- locks: framework_assignments, SHARE UPDATE EXCLUSIVE, a moment
-- locks: policies, SHARE UPDATE EXCLUSIVE, a moment
-- locks: policy_signatures, SHARE UPDATE EXCLUSIVE, a moment
-- locks: phishing_templates, SHARE UPDATE EXCLUSIVE, a moment
-- locks: template_uses, SHARE UPDATE EXCLUSIVE, a moment
-- locks: phishing_results, SHARE UPDATE EXCLUSIVE, a moment
-- locks: phishing_days, SHARE UPDATE EXCLUSIVE, a moment
-- locks: reported_emails, SHARE UPDATE EXCLUSIVE, a moment
-- locks: email_classifications, SHARE UPDATE EXCLUSIVE, a moment
-- locks: breaches, SHARE UPDATE EXCLUSIVE, a moment
-- locks: exposures, SHARE UPDATE EXCLUSIVE, a moment
-- locks: reports, SHARE UPDATE EXCLUSIVE, a moment
-- locks: monthly_mailings, SHARE UPDATE EXCLUSIVE, a moment
-- locks: mail_requests, SHARE UPDATE EXCLUSIVE, a moment
-- locks: partner_mails, SHARE UPDATE EXCLUSIVE, a moment
-- locks: outbox, SHARE UPDATE EXCLUSIVE, a moment
-- locks: sent_emails, SHARE UPDATE EXCLUSIVE, a moment
-- locks: mail_switches, SHARE UPDATE EXCLUSIVE, a moment
-- locks: directory_connections, SHARE UPDATE EXCLUSIVE, a moment
-- locks: directory_accounts, SHARE UPDATE EXCLUSIVE, a moment
-- locks: sync_runs, SHARE UPDATE EXCLUSIVE, a moment
-- locks: sync_accounts, SHARE UPDATE EXCLUSIVE, a moment
-- locks: signals, SHARE UPDATE EXCLUSIVE, a moment
-- locks: import_lines, SHARE UPDATE EXCLUSIVE, a moment
-- locks: events, SHARE UPDATE EXCLUSIVE, a moment
-- locks: event_head, SHARE UPDATE EXCLUSIVE, a moment
-- locks: published_events, SHARE UPDATE EXCLUSIVE, a moment
-- locks: webhooks, SHARE UPDATE EXCLUSIVE, a moment
-- locks: webhook_deliveries, SHARE UPDATE EXCLUSIVE, a moment
-- locks: deleted_webhooks, SHARE UPDATE EXCLUSIVE, a moment
-- locks: cell, SHARE UPDATE EXCLUSIVE, a moment
-- locks: moves, SHARE UPDATE EXCLUSIVE, a moment
-- locks: resting_clients, SHARE UPDATE EXCLUSIVE, a moment
-- locks: moved_keys, SHARE UPDATE EXCLUSIVE, a moment
-- locks: secrets, SHARE UPDATE EXCLUSIVE, a moment
-- locks: periodic_jobs, SHARE UPDATE EXCLUSIVE, a moment
-- locks: daily_refreshes, SHARE UPDATE EXCLUSIVE, a moment
-- locks: recounts, SHARE UPDATE EXCLUSIVE, a moment
-- locks: clock_hold, SHARE UPDATE EXCLUSIVE, a moment
-- Rewords comments, which docs/schema.md shows. Nothing else changes. The locks block no reads or writes.

COMMENT ON TABLE partners IS 'Organizations that manage clients. No request accesses the data of another partner.';
COMMENT ON COLUMN partners.mails_off IS 'Kinds of partner_mails that are switched off.';
COMMENT ON COLUMN partners.archived_at IS
    'When the partner was archived. Its clients with the same archived_at were archived with it. Null if it is not archived.';

COMMENT ON COLUMN api_keys.prefix IS 'The beginning of the key, by which people identify it.';
COMMENT ON COLUMN api_keys.digest IS 'Digest of the whole key. The key of a request is looked up by it.';
COMMENT ON COLUMN api_keys.all_clients IS
    'Whether the key has access to all clients of its partner. If not, api_key_clients lists its clients.';
COMMENT ON COLUMN api_keys.networks IS 'Networks from which the key can be used. If empty, it can be used from anywhere.';
COMMENT ON COLUMN api_keys.demo IS 'A demonstration key, whose text is published.';
COMMENT ON TABLE api_key_clients IS 'Clients to which a key has access if its all_clients is false.';

COMMENT ON TABLE idempotency_records IS 'Outcomes of writes with an Idempotency-Key, kept for a day.';
COMMENT ON COLUMN idempotency_records.status IS
    'Status code of the response. 0 while the request is in progress outside of a transaction.';
COMMENT ON COLUMN idempotency_records.seal_id IS 'The UUID for which sealed_body is sealed.';
COMMENT ON COLUMN idempotency_records.sealed_body IS 'Sealed body of a response that contains a secret. body is then empty.';
COMMENT ON COLUMN idempotency_records.canonical_hash IS
    'Hash of request_hash and the request with its body in canonical form (RFC 8785). Null in rows that 1.0 inserted; invalid if 1.0 has replaced request_hash.';
COMMENT ON INDEX idempotency_records_by_age IS 'Deletes expired records.';
COMMENT ON INDEX idempotency_records_sealed IS 'Reseals bodies with a new encryption key.';

COMMENT ON TABLE audit_entries IS
    'Audit trail: an entry for each successful write, kept for 400 days. It references no table, so that an entry outlives the objects that it names.';
COMMENT ON COLUMN audit_entries.os_user IS
    'For a command, the operating system user who ran it. sudo_user is the user who called sudo.';
COMMENT ON COLUMN audit_entries.object_id IS 'ID of the written object, as v2 shows it.';
COMMENT ON COLUMN audit_entries.fields IS 'Names of the fields in the request.';
COMMENT ON INDEX audit_entries_by_client IS 'The command audit, for one client.';
COMMENT ON INDEX audit_entries_by_key IS 'The command audit, for one key.';

COMMENT ON TABLE replaced_keys IS
    'Earlier texts of rotated API keys. api_keys contains the current text. Ended texts are kept because the audit trail names their prefixes.';
COMMENT ON COLUMN replaced_keys.place IS 'Position among the texts of the key, from 1 for the original text.';
COMMENT ON COLUMN replaced_keys.until IS 'When the text expires, unless the key ends before.';
COMMENT ON COLUMN replaced_keys.ended_at IS
    'When an operator or a later rotation ended the text. Setting the clock back does not undo this. Null if neither ended it.';

COMMENT ON TABLE brands IS
    'Brands of the service, of partners and of clients, as emails, pages and reports show them. An empty or null field inherits from the client''s partner, then from the service.';
COMMENT ON COLUMN brands.partner_id IS 'Null in a client''s brand and in the service''s brand.';
COMMENT ON COLUMN brands.client_id IS 'Null in a partner''s brand and in the service''s brand.';
COMMENT ON COLUMN brands.accent_color IS 'Format: #rrggbb, in lower case.';
COMMENT ON INDEX brands_service_unique IS 'The service has only one brand.';

COMMENT ON TABLE clients IS
    'Client organizations of partners: the tenants. A read of a client needs only its row. The columns from average_score to click_rate_total are its summary, which is recomputed when it is older than a few minutes.';
COMMENT ON COLUMN clients.external_id IS
    'The partner''s own identifier of the client. Several clients can have the same one.';
COMMENT ON COLUMN clients.phishing_categories IS
    'Categories of templates that can be sent to the client''s users. Null for all.';
COMMENT ON COLUMN clients.framework_ids IS 'Frameworks assigned to the client, without duplicates.';
COMMENT ON COLUMN clients.users_active IS 'Stored count, like users_inactive.';
COMMENT ON COLUMN clients.summarized_at IS 'When the summary was computed.';
COMMENT ON COLUMN clients.refresh_until IS
    'Until when the background refreshes the summary before it is stale. A read that finds a stale summary extends this time.';
COMMENT ON COLUMN clients.training_reminded_on IS
    'Day of the last training reminders to the whole client, which are sent at most once a day.';
COMMENT ON INDEX clients_by_summary IS 'Finds stale summaries before a page is read.';
COMMENT ON INDEX clients_name_unique IS
    'Client names are unique within a partner. The name of an archived client can be reused.';

COMMENT ON TABLE client_risks IS
    'Components of a client''s risk, stored with its summary so that both are from the same moment.';
COMMENT ON COLUMN client_risks.factor_totals IS 'Sum of each factor, in the order of the model''s list of factors.';
COMMENT ON COLUMN client_risks.factor_users IS 'Number of users for whom each factor is not 0, in the same order.';
COMMENT ON COLUMN risk_history.active_users IS 'Number of active users. Null for days before this was counted.';

COMMENT ON TABLE admins IS 'Admins of partners and clients.';
COMMENT ON COLUMN admins.email_key IS 'See users.email_key.';
COMMENT ON COLUMN admins.email_state IS 'See users.email_state.';
COMMENT ON INDEX admins_client_email_unique IS
    'The email addresses of a client''s admins are unique. Also checks new invites.';
COMMENT ON INDEX admins_email_key_unique IS 'Only one admin of a client can claim a key. Also checks new invites.';
COMMENT ON INDEX admins_email_unsettled IS 'Admins whose key is not yet computed, or is shared.';
COMMENT ON TABLE admin_invites IS 'Invitations to become a client''s admin.';
COMMENT ON COLUMN admin_invites.partner_id IS 'The partner whose rate limit the invite counts toward.';
COMMENT ON COLUMN admin_invites.email_key IS 'See users.email_key.';
COMMENT ON INDEX admin_invites_by_client IS 'The rate limit of a client''s invites.';
COMMENT ON INDEX admin_invites_by_partner IS 'The rate limit of a partner''s invites.';
COMMENT ON INDEX admin_invites_by_email IS 'Checks whether an email address has an open invite.';
COMMENT ON INDEX admin_invites_by_email_key IS 'Checks whether an email address has an open invite.';
COMMENT ON INDEX admin_invites_email_unsettled IS 'Invites whose key is not yet computed.';

COMMENT ON TABLE groups IS 'Groups of users: one that is managed manually, and the groups of the client''s directory.';
COMMENT ON INDEX groups_id_unique IS 'Imports, which refer to an object by its ID alone.';
COMMENT ON INDEX groups_manual_unique IS 'A client has only one manually managed group.';

COMMENT ON TABLE users IS
    'Users of clients. The columns from score to phished_clicked_year are derived values, stored for lists and updated by the transactions that change them. Vacuum runs early, because index-only scans read every page written since the last one.';
COMMENT ON COLUMN users.name_key IS 'Sort key of first and last name.';
COMMENT ON COLUMN users.overrides IS 'Fields that were set manually. A directory sync does not change them.';
COMMENT ON COLUMN users.score IS 'The risk score. user_risks contains its components.';
COMMENT ON COLUMN users.next_due_on IS
    'The earliest due date of an incomplete assignment. The user is overdue once it has passed.';
COMMENT ON COLUMN users.next_course_id IS 'The course of the assignment that is due on next_due_on.';
COMMENT ON COLUMN users.phished_sent IS
    'Number of simulated emails ever sent to the user. phished_clicked of them were clicked.';
COMMENT ON COLUMN users.phished_sent_year IS
    'phished_sent within the last 365 days. phished_clicked_year is phished_clicked within the same time.';
COMMENT ON COLUMN users.email_key IS
    'Key by which email addresses are compared. Null for an address in plain ASCII, which is its own key.';
COMMENT ON COLUMN users.email_state IS
    'Null if the user claims the key, which only one user of a client can do. shared if another user had already claimed it. unsettled until the key of a row from 1.0 is computed.';
COMMENT ON INDEX users_by_creation IS
    'The list, oldest first. A search compares columns of this index, and reads only matching rows from the table.';
COMMENT ON INDEX users_by_due IS 'The list''s filter overdue. It includes next_due_on so that counts read only the index.';
COMMENT ON INDEX users_by_email IS 'Users of all clients by email address.';
COMMENT ON INDEX users_by_email_key IS
    'Users of all clients by the key of their email address, if the address is not its own key.';
COMMENT ON INDEX users_by_group IS 'The audience of a policy or framework, if it is a group.';
COMMENT ON INDEX users_by_score IS 'The list by score, and its score filters.';
COMMENT ON INDEX users_email_key_unique IS
    'Only one user of a client can claim a key. Also the list by email. Rows that claim no key contain NULL, which is not equal to any other value.';
COMMENT ON INDEX users_email_unsettled IS 'Users whose key is not yet computed, or is shared.';
COMMENT ON INDEX users_for_summary IS 'The values for a client''s summary, from the index alone.';

COMMENT ON TABLE user_risks IS
    'Components of a user''s score. The daily refresh rewrites every row. Pages are half full, so that the new version of a row fits next to the old one and the index entry stays valid.';
COMMENT ON COLUMN user_risks.courses_completed IS 'This count and the counts after it cover the last year.';

COMMENT ON TABLE collections IS 'Sets of users that a partner creates.';
COMMENT ON INDEX collections_id_unique IS 'Imports, which refer to an object by its ID alone.';

COMMENT ON TABLE courses IS
    'The service''s courses, for all partners. Their IDs are fixed, so that they are the same in every installation.';
COMMENT ON COLUMN courses.renewal_months IS
    'Number of months after which a completed course is assigned again, in a further round.';
COMMENT ON TABLE default_program IS 'The initial program of a new client.';
COMMENT ON TABLE program_courses IS 'A client''s program: its courses in order.';
COMMENT ON COLUMN program_courses.due_after_days IS 'Counted from the user''s enrollment.';

COMMENT ON TABLE assignments IS
    'Courses assigned to users. A course whose renewal is due is assigned again, in a further round.';
COMMENT ON COLUMN assignments.superseded IS
    'Whether the course has a later round. A user''s training shows only the last round.';
COMMENT ON COLUMN assignments.position IS 'Position in the user''s list: the position in the program, or 1000 and above.';
COMMENT ON COLUMN assignments.from_program IS
    'Whether the program is a reason for the assignment. The other reasons are direct (a request, or the user took the course) and frameworks. Several can apply.';
COMMENT ON COLUMN assignments.frameworks IS 'Framework assignments that require the course.';
COMMENT ON COLUMN assignments.assigned_at IS
    'The time that the API shows. It can be earlier than given_at, the time at which the row was created, by the service''s clock.';
COMMENT ON COLUMN assignments.overdue_noted IS 'Whether the event for the overdue assignment has been written.';
COMMENT ON COLUMN assignments.updated_at IS
    'When the assignment or its position in the list last changed. Null if it has not changed since it was assigned.';
COMMENT ON INDEX assignments_by_assigned IS
    'The list of a client''s training. It includes the columns that filters compare, so that only matching rows are read.';
COMMENT ON INDEX assignments_by_change_week IS
    'The list''s filter updated_since: each week in the order of the list. It includes all columns that a page shows.';
COMMENT ON INDEX assignments_by_completion_week IS
    'The list''s filter on the completion time: each week in the order of the list. It includes all columns that a page shows.';
COMMENT ON INDEX assignments_by_due_week IS
    'Assignments that became overdue, for the list''s filter updated_since. Also finds the oldest assignment with the status assigned.';
COMMENT ON INDEX assignments_open_by_assigned IS 'The list''s filters for assigned and overdue courses.';
COMMENT ON INDEX assignments_open IS 'A user''s next due course.';
COMMENT ON INDEX assignments_to_note IS 'Overdue assignments whose event is not yet written.';
COMMENT ON VIEW user_training IS
    'The last round of each of a user''s courses, with its place in the user''s list, from 1. A condition on client_id and user_id is applied before places are counted.';
COMMENT ON TABLE waiting_assignments IS
    'Users of a large audience to whom a course is yet to be assigned. The request counts the users. The background assigns the course, one batch per transaction, and deletes their rows in the same transaction.';
COMMENT ON COLUMN waiting_assignments.notify IS 'Whether the user receives an invitation by email.';
COMMENT ON COLUMN waiting_assignments.direct IS 'Whether the course was assigned directly. This is one of the assignment''s reasons; frameworks has the others. See assignments.';

COMMENT ON TABLE framework_courses IS 'Courses that a framework requires of its audience.';
COMMENT ON COLUMN framework_courses.role IS 'Role of the users who need the course. Null for all users.';
COMMENT ON TABLE framework_assignments IS 'Frameworks assigned to clients, with the results of the last evaluation.';
COMMENT ON COLUMN framework_assignments.training IS
    'Whether the framework''s training applies. The columns phishing, policies and reporting say so of its other modules.';
COMMENT ON COLUMN framework_assignments.requirements IS 'Requirements as the API shows them, in the order of the catalog.';
COMMENT ON COLUMN framework_assignments.evaluated_at IS
    'When the framework was last evaluated. The epoch if never; -infinity to request an immediate evaluation.';
COMMENT ON COLUMN framework_assignments.changed_at IS
    'When the visible values last changed, except evaluated_at. Null before the first evaluation.';
COMMENT ON INDEX framework_assignments_id_unique IS 'Imports, which refer to an object by its ID alone.';
COMMENT ON INDEX framework_assignments_unique IS 'A framework is assigned to an audience only once.';

COMMENT ON COLUMN policies.scope_id IS
    'The group or collection of the scope, or the client itself for the scope tenant. It stays when the group or collection is deleted; the audience is then empty.';
COMMENT ON COLUMN policies.published_at IS
    'When the current version was published. Signatures of earlier versions no longer count. Null for the first version.';
COMMENT ON COLUMN policies.reminded_on IS 'Day of the last reminders, which are sent at most once a day.';
COMMENT ON COLUMN policies.audience_count IS
    'Number of users who must sign the policy. acknowledged_count of them have signed. Both are as of the last count.';
COMMENT ON COLUMN policies.counted_until IS
    'Until when the counts are valid: when the first signature expires. A change that affects the counts sets -infinity, and the next read counts again.';
COMMENT ON INDEX policies_id_unique IS 'Signals, which refer to a policy without its client.';
COMMENT ON TABLE policy_signatures IS
    'Users'' signatures, by version of the policy. The primary key''s index alone shows whether a user has signed.';
COMMENT ON COLUMN policy_signatures.recorded_at IS
    'When the service recorded the signature, which can be long after signed_at. Null if both are the same.';
COMMENT ON INDEX policy_signatures_by_time IS 'Signatures that expire next, or that expired last.';
COMMENT ON INDEX policy_signatures_by_user IS 'Reports, which read one user after another.';

COMMENT ON TABLE phishing_templates IS 'Templates of simulated emails, for all partners.';
COMMENT ON COLUMN phishing_templates.landing IS 'The page that a click opens.';
COMMENT ON COLUMN phishing_templates.own IS
    'Whether the template comes with the service and is updated with each version. If not, it was imported.';
COMMENT ON COLUMN phishing_templates.changed_at IS 'When an import last changed the template. Null if none has.';
COMMENT ON INDEX phishing_templates_imported_unique IS 'Imported templates are identified by name and language.';
COMMENT ON TABLE template_uses IS
    'Number of emails created for a client from each template. It determines which template is used next.';
COMMENT ON TABLE phishing_results IS
    'Simulated emails and their results. A status only moves forward, except if a failed email is retried.';
COMMENT ON COLUMN phishing_results.automated IS
    'Whether an email scanner followed a link. automated_reason says how it was recognized. The scan changes no status or time, and is not counted.';
COMMENT ON COLUMN phishing_results.send_at IS 'When the email is scheduled to be sent.';
COMMENT ON COLUMN phishing_results.failed_at IS
    'When it became certain that the email will not be sent. failure is the reason.';
COMMENT ON INDEX phishing_results_by_sent IS 'The list''s filters on the sending time, and reports on a period.';
COMMENT ON INDEX phishing_results_by_user IS 'A user''s results, risk, and previously received templates.';
COMMENT ON INDEX phishing_results_failed IS 'Failed emails, for the operator.';
COMMENT ON INDEX phishing_results_falls IS 'Users who repeatedly fell for simulated emails.';
COMMENT ON INDEX phishing_results_id_unique IS 'Signals and tracked links, which refer to a result without its client.';
COMMENT ON INDEX phishing_results_waiting IS 'Waiting emails, for the operator.';
COMMENT ON TABLE phishing_days IS
    'Stored counts of the simulated emails sent to a client''s users on a day, and of their results since.';
COMMENT ON COLUMN phishing_days.opened IS 'Emails with at least this outcome: a clicked email also counts as opened.';
COMMENT ON TABLE reported_emails IS 'Emails that users reported, other than simulated ones.';
COMMENT ON INDEX reported_emails_by_message IS 'Classifications, which refer to the message alone.';
COMMENT ON INDEX reported_emails_by_report IS 'A client''s list.';
COMMENT ON INDEX reported_emails_by_user IS 'A user''s list.';
COMMENT ON INDEX reported_emails_of_user IS 'A user can report a message only once.';
COMMENT ON TABLE email_classifications IS
    'The latest classification of each message. It can arrive before the message is reported, and also applies to later reports.';
COMMENT ON INDEX email_classifications_by_age IS 'Deletes old classifications.';

COMMENT ON TABLE breaches IS 'The catalog of breaches, for all partners.';
COMMENT ON COLUMN breaches.sensitive IS
    'Whether the breach as a whole is sensitive; spam_list: whether it is a list for spam. Both affect the severity in addition to the data classes.';
COMMENT ON TABLE exposures IS 'Users'' email addresses in breaches.';
COMMENT ON COLUMN exposures.id IS 'Breaks ties in the order of lists. The API does not show it.';
COMMENT ON COLUMN exposures.found IS
    'Whether a signal reported the finding. If only the resolution is known, the catalog describes the exposure, which is announced once it is found.';
COMMENT ON INDEX exposures_by_breach IS 'Users affected by a change to a breach.';
COMMENT ON INDEX exposures_for_summary IS 'A client''s summary and a user''s counts, from the index alone.';

COMMENT ON TABLE reports IS 'Reports, including the queue of pending ones. Their files are kept in a store.';
COMMENT ON COLUMN reports.mailed_for IS
    'First day of the month that the report covers, if the service created it to email it to the client''s admins. Null if a caller requested it.';
COMMENT ON COLUMN reports.lease IS 'The lease of the process that creates the report.';
COMMENT ON COLUMN reports.due_at IS
    'When the next attempt is due, or when the lease ends. Null before the first claim: the report is due immediately.';
COMMENT ON INDEX reports_asked IS 'Claims of reports that callers requested.';
COMMENT ON INDEX reports_by_age IS 'Deletes expired reports.';
COMMENT ON INDEX reports_by_created IS 'The list, and the rate limit of reports.';
COMMENT ON INDEX reports_mailed_unique IS 'A client has only one report for each month.';
COMMENT ON INDEX reports_own IS 'Claims of reports that the service created.';
COMMENT ON INDEX reports_pending IS 'The number and age of pending reports, and reports that have waited too long.';
COMMENT ON TABLE monthly_mailings IS 'Months, by their first day, in which the reports on the previous month were queued.';

COMMENT ON TABLE mail_requests IS
    'Emails that an operation or the service requested, except simulated ones, and their outcomes. The columns from user_id to report_id identify the recipient and what the email is about, depending on its type.';
COMMENT ON COLUMN mail_requests.round IS 'The round of the course, for a certificate.';
COMMENT ON COLUMN mail_requests.due_at IS 'When the email is to be sent first. Null for immediately.';
COMMENT ON COLUMN mail_requests.failed_at IS
    'When it became certain that the email cannot be delivered or is no longer wanted. failure is the reason.';
COMMENT ON COLUMN mail_requests.suppressed_at IS
    'When the email was due while the client had this kind of email switched off.';
COMMENT ON INDEX mail_requests_by_invite IS 'Checks whether an email refers to an old invite, which is then kept.';
COMMENT ON INDEX mail_requests_certificate_unique IS 'The certificate of a round is sent only once.';
COMMENT ON INDEX mail_requests_failed IS 'Failed emails, for the operator.';
COMMENT ON INDEX mail_requests_notice_unique IS 'A user is notified of an exposure only once.';
COMMENT ON INDEX mail_requests_reminder_unique IS
    'A simulated email has at most one reminder, for the user who fell for it.';
COMMENT ON INDEX mail_requests_report_unique IS 'An admin receives the report of a month only once.';
COMMENT ON INDEX mail_requests_training_unique IS 'A user receives at most one training reminder a day.';
COMMENT ON INDEX mail_requests_waiting IS 'Waiting emails, for the operator.';
COMMENT ON TABLE partner_mails IS 'Emails from the service to the owners and admins of a partner, and their outcomes.';
COMMENT ON COLUMN partner_mails.cause IS
    'The occasion of the email. A recipient receives only one email of a kind for each cause.';
COMMENT ON COLUMN partner_mails.notice IS 'The values for the text of the email.';
COMMENT ON COLUMN partner_mails.suppressed_at IS
    'When the email was due while the partner had this kind of email switched off.';
COMMENT ON INDEX partner_mails_unsent IS 'Waiting and failed emails, for the operator.';
COMMENT ON TABLE outbox IS
    'Emails waiting to be sent: rows of mail_requests, phishing_results and partner_mails that are neither sent nor failed. A row belongs to the process that set its lease, until due_at. Without a lease, or after due_at, any process can claim it.';
COMMENT ON COLUMN outbox.client_id IS 'ID of the client, or of the partner for a row of partner_mails.';
COMMENT ON COLUMN outbox.id IS 'ID of the row of mail_requests, phishing_results or partner_mails, depending on kind.';
COMMENT ON COLUMN outbox.urgency IS '1 for emails that someone is waiting for, 2 for all others.';
COMMENT ON COLUMN outbox.due_at IS 'When the next attempt is due. For a leased row, when the lease ends.';
COMMENT ON COLUMN outbox.attempts IS 'Number of failed attempts.';
COMMENT ON COLUMN outbox.scanned IS
    'How an email scanner was recognized, if it followed a link while the email was being sent.';
COMMENT ON COLUMN outbox.maybe_sent IS
    'Whether the email may have been sent although it is not marked as sent. It can no longer be cancelled.';
COMMENT ON INDEX outbox_by_due IS 'When the next email is due, and since when the oldest one has been due.';
COMMENT ON INDEX outbox_by_urgency IS 'Claims, which take turns between clients, urgent emails first.';
COMMENT ON TABLE sent_emails IS 'Emails sent to a user.';
COMMENT ON TABLE mail_switches IS
    'Whether a client wants a kind of email that the service sends on its own initiative. Without a row, the default applies.';

COMMENT ON TABLE directory_connections IS 'Connections to clients'' directories.';
COMMENT ON COLUMN directory_connections.settings IS 'Settings that are not secret.';
COMMENT ON COLUMN directory_connections.position IS 'Position from which the next run reads. Null for the start.';
COMMENT ON COLUMN directory_connections.synced_at IS 'When a run last completed.';
COMMENT ON INDEX directory_connections_by_next IS 'Directories whose next run is due.';
COMMENT ON TABLE directory_accounts IS
    'Accounts of a client''s directory as the runs have applied them, including accounts without a user. They are kept because a later delta contains only changes.';
COMMENT ON COLUMN directory_accounts.unsettled IS
    'Whether the account was skipped, or its new email address could not be applied. Every run retries it.';
COMMENT ON INDEX directory_accounts_by_user IS 'A user has only one account.';
COMMENT ON INDEX directory_accounts_unsettled IS 'Accounts that a run retries.';
COMMENT ON TABLE sync_runs IS 'Runs that sync users with a directory, including the queue of open ones.';
COMMENT ON COLUMN sync_runs.force IS 'Whether the run skips the guard against many deactivations.';
COMMENT ON COLUMN sync_runs.updated_inactive IS
    'Number of updated users whose accounts are disabled or otherwise not wanted.';
COMMENT ON COLUMN sync_runs.stage IS
    'Accounts are read into sync_accounts (reading), checked as a whole (judging), and then applied (applying).';
COMMENT ON COLUMN sync_runs.position IS
    'Position from which reading continues, and the release that can read from it. Once reading is complete, the position from which the next run begins.';
COMMENT ON COLUMN sync_runs.from_start IS 'Whether the run reads the whole directory. whole is true once it has.';
COMMENT ON COLUMN sync_runs.started_over IS 'Whether the directory rejected the run''s position, so that it started over.';
COMMENT ON COLUMN sync_runs.deaths IS
    'Number of consecutive leases that expired without any progress, for example because the process died.';
COMMENT ON COLUMN sync_runs.without_email IS
    'Number of accounts without an email address at the end of the run, not counting guests.';
COMMENT ON INDEX sync_runs_open IS 'A client has at most one open run.';
COMMENT ON TABLE sync_accounts IS 'Accounts that a client''s open run has read.';
COMMENT ON COLUMN sync_accounts.account IS 'Null if nothing changed.';
COMMENT ON COLUMN sync_accounts.phase IS
    'Order in which accounts are applied: 0 for nothing to do, 1 for accounts whose users leave, 2 for users to update, 3 for email addresses that another user must give up first, 4 for accounts without a user.';

COMMENT ON TABLE signals IS
    'Processed signals. Each is inserted in the transaction that applies it, so that it is processed only once. A row is deleted once its signal can no longer be sent again.';
COMMENT ON INDEX signals_by_age IS 'Deletes old signals.';
COMMENT ON TABLE import_lines IS
    'Lines of an import, until everything that they refer to is applied. The table is unlogged: an interrupted import starts over with its file.';
COMMENT ON COLUMN import_lines.kind IS 'Position of the line''s kind in the order in which kinds are applied.';
COMMENT ON COLUMN import_lines.round IS 'The round of its kind in which the line is applied.';
COMMENT ON COLUMN import_lines.line IS 'Number of the line in the input.';
COMMENT ON COLUMN import_lines.object IS 'The line''s object. Null if it does not affect the order.';
COMMENT ON COLUMN import_lines.client_id IS 'The client of the object. user_id is its user.';
COMMENT ON COLUMN import_lines.outcome IS 'The outcome of earlier rounds.';

COMMENT ON TABLE events IS
    'The outbox of events. An event is written in the transaction of its change, and deleted when it is published. New entries go to the end of both indexes, so that an event adds little to a write.';
COMMENT ON COLUMN events.object_id IS
    'The object of the event in addition to the client and the user, such as the completed course.';
COMMENT ON COLUMN events.recorded_at IS 'When the event was written, by the server''s clock. See webhooks.active_since.';
COMMENT ON COLUMN events.postponed_until IS
    'Until when the event is postponed after it could not be published. Null if it is not postponed.';
COMMENT ON COLUMN events.number IS
    'Number from event_numbers, in the order in which events were written. See webhooks.active_from. Null in rows that are older than this column; these come first.';
COMMENT ON TABLE event_head IS
    'The position of the last published event, in one row. A process that publishes locks the row until its transaction ends, so that positions become visible in order and without gaps.';
COMMENT ON TABLE published_events IS 'Published events, as callers receive them.';
COMMENT ON COLUMN published_events.body IS 'The whole event in JSON: the same bytes for every reader and every attempt.';
COMMENT ON INDEX published_events_by_client IS 'The feed of a key with access to some clients.';
COMMENT ON INDEX published_events_by_time IS 'The start of a feed that is read from a given time.';
COMMENT ON TABLE webhooks IS 'Subscriptions to which events are delivered.';
COMMENT ON COLUMN webhooks.client_ids IS
    'Limits the access to these clients. If empty, the subscription has access to all clients of its key.';
COMMENT ON COLUMN webhooks.active_since IS
    'When the subscription was last activated, by the server''s clock. It receives events recorded from then on.';
COMMENT ON COLUMN webhooks.secret IS
    'The sealed secret that signs deliveries. The previous one, replaced_secret, also signs until replaced_until.';
COMMENT ON COLUMN webhooks.last_delivery_at IS 'When a delivery last succeeded.';
COMMENT ON COLUMN webhooks.failing_since IS 'Since when all deliveries have failed. Null if the last one succeeded.';
COMMENT ON COLUMN webhooks.active_from IS
    'Number from event_numbers when the subscription was last reactivated. Events and deliveries with smaller numbers are not delivered. 0 if it has been active since its creation.';
COMMENT ON COLUMN webhooks.disabled_reason IS
    'Why the service disabled the subscription: failures, gone, key_revoked or key_expired. Null if it is not disabled, or if 1.0 disabled it.';
COMMENT ON COLUMN webhooks.resumes_as IS
    'The status before the key ended, which is restored if the key turns out to be valid. Null if the key did not end.';
COMMENT ON TABLE webhook_deliveries IS
    'The delivery of an event to a subscription, with its attempts. If a subscription is deleted, deleted_webhooks lists it until its deliveries are deleted.';
COMMENT ON COLUMN webhook_deliveries.position IS 'With partner_id, the primary key of the event in published_events.';
COMMENT ON COLUMN webhook_deliveries.reason IS 'Why the delivery was dropped.';
COMMENT ON COLUMN webhook_deliveries.queued_at IS
    'Since when the delivery waits, by the server''s clock. If the subscription was not active meanwhile, the delivery is dropped, even if the subscription is active again.';
COMMENT ON COLUMN webhook_deliveries.due_at IS
    'For a waiting delivery, when the next attempt is due. If it is leased, when the lease ends.';
COMMENT ON COLUMN webhook_deliveries.tries IS
    'The attempts: a list of objects with at, status_code, duration_ms and response.';
COMMENT ON COLUMN webhook_deliveries.number IS
    'Number from event_numbers when the delivery was last queued. See webhooks.active_from. Null in rows that are older than this column.';
COMMENT ON INDEX webhook_deliveries_due IS 'Claims, which take turns between subscriptions.';
COMMENT ON INDEX webhook_deliveries_leased IS 'Attempts in progress, which are limited to a few per subscription.';
COMMENT ON TABLE deleted_webhooks IS
    'Subscriptions whose deliveries are deleted in the background, one batch per transaction. A row is deleted when no delivery is left and no transaction in progress can insert one.';

COMMENT ON TABLE cell IS
    'The database''s cell, in one row whose number and count never change. Empty if there is only one installation.';
COMMENT ON COLUMN cell.public_url IS
    'The URL with which links without a key begin, from the service''s last start. Other cells forward users of older links to it.';
COMMENT ON TABLE moves IS 'Partners that move or moved to another cell, or came from one. db/move describes the steps.';
COMMENT ON COLUMN moves.held_until IS 'Until when the partner''s writes are rejected, in the step holding.';
COMMENT ON COLUMN moves.keep_until IS 'Until when the rows of a partner in the step gone are kept.';
COMMENT ON TABLE resting_clients IS 'Clients whose emails, events and deliveries wait while their partner moves.';
COMMENT ON TABLE moved_keys IS 'Keys that moved permanently to another cell with their partner, and that cell.';

COMMENT ON TABLE secrets IS
    'Values that all processes on the database share: the secrets of cursors and links, and a check of the encryption key.';
COMMENT ON TABLE periodic_jobs IS 'Recurring jobs. Only one process runs each.';
COMMENT ON COLUMN periodic_jobs.due_at IS 'When the job is due, or its lease ends.';
COMMENT ON COLUMN periodic_jobs.failed_at IS 'Times at which the job failed within the last week.';
COMMENT ON TABLE daily_refreshes IS 'Days for which the daily refresh of scores is complete.';
COMMENT ON TABLE recounts IS
    'Stored counts that a process of an earlier version may not update after a migration. They are recounted until the time in until, and once after it.';
COMMENT ON TABLE clock_hold IS
    'One row while the clock shows a day far from the last daily refresh. Work that only the clock causes then waits. The row is deleted once the day is plausible.';
COMMENT ON COLUMN clock_hold.id IS
    'Identifies the hold, so that a process updates waited only for the hold that it has seen.';
COMMENT ON COLUMN clock_hold.day IS 'The day that the clock last showed.';
COMMENT ON COLUMN clock_hold.seen_at IS 'When the hold began, by the same clock.';
COMMENT ON COLUMN clock_hold.waited IS 'Number of seconds that processes have waited, by their monotonic clocks.';
COMMENT ON FUNCTION uuid_v7 IS 'Returns a version 7 UUID, for a row of a statement that inserts many.';
