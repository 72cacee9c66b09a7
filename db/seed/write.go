package seed

import (
	"context"
	"slices"

	"partnerapi/domain"
)

// clients writes clients with all their rows, a table at a time in the order of
// the foreign keys. computeTotals must have been called.
func (w *writer) clients(ctx context.Context, clients []*client, program []courseSpec, today domain.Date) error {
	w.clientRows(ctx, clients)
	w.countClients(ctx, clients)
	w.clientParts(ctx, clients, program)
	w.userRows(ctx, clients, today)
	w.training(ctx, clients, today)
	w.phishing(ctx, clients)
	w.signals(ctx, clients)
	w.collections(ctx, clients)
	w.policies(ctx, clients)
	w.reports(ctx, clients)
	return w.err
}

func (w *writer) partner(ctx context.Context, p *partner) {
	w.copy(ctx, "partners", "id name name_key created_at", each([]*partner{p}, func(p *partner) []any {
		return []any{uuid(p.id), p.name, domain.SortKey(p.name), p.createdAt}
	}))
	w.copy(ctx, "admins", adminColumns, each(p.admins, func(a domain.Admin) []any { return adminRow(p.id, a) }))
}

const adminColumns = "id partner_id client_id email name role last_login_at created_at"

func adminRow(partner domain.PartnerID, a domain.Admin) []any {
	var client domain.ClientID
	if a.Client != nil {
		client = *a.Client
	}
	return []any{uuid(a.ID), uuid(partner), nullID(client), a.Email, a.Name, string(a.Role), a.LastLoginAt, a.CreatedAt}
}

func (w *writer) clientRows(ctx context.Context, clients []*client) {
	w.copy(ctx, "clients", "id partner_id name name_key industry external_id dark_web_monitoring directory_sync "+
		"framework_ids users_active users_inactive average_score high_risk_users overdue_users on_track_rate "+
		"click_rate_90d report_rate_90d click_rate_365d click_rate_total summarized_at created_at updated_at",
		each(clients, func(c *client) []any {
			s := &c.Summary
			return []any{uuid(c.ID), uuid(c.Partner), c.Name, domain.SortKey(c.Name), c.Industry, c.ExternalID,
				c.DarkWebMonitoring, (*string)(c.DirectorySync), append([]string{}, c.Frameworks...), c.ActiveUsers,
				c.InactiveUsers, s.AverageScore, s.HighRiskUsers, s.OverdueUsers, s.OnTrackRate,
				s.ClickRate90d, s.ReportRate90d, s.ClickRate365d, s.ClickRateTotal, s.At, c.CreatedAt, c.UpdatedAt}
		}))
}

// countClients adds the clients to the counters of their partners.
func (w *writer) countClients(ctx context.Context, clients []*client) {
	added := map[domain.PartnerID]int{}
	for _, c := range clients {
		added[c.Partner]++
	}
	for partner, n := range added {
		w.exec(ctx, "count a partner's clients",
			"UPDATE partners SET client_count = client_count + $2 WHERE id = $1::uuid", partner.UUID(), n)
	}
}

// clientParts writes the rows of clients other than those of their users.
func (w *writer) clientParts(ctx context.Context, clients []*client, program []courseSpec) {
	w.copy(ctx, "groups", "client_id id name manual created_at",
		perClient(clients, func(c *client) []group { return c.groups }, func(c *client, g group) []any {
			return []any{uuid(c.ID), uuid(g.ID), g.Name, g.manual, c.CreatedAt}
		}))
	w.copy(ctx, "program_courses", "client_id position course_id due_after_days",
		perClient(clients, func(*client) []courseSpec { return program }, func(c *client, l courseSpec) []any {
			return []any{uuid(c.ID), l.position, uuid(l.course), l.dueAfter}
		}))
	w.copy(ctx, "risk_history", "client_id day average_score",
		perClient(clients, func(c *client) []dayScore { return c.history }, func(c *client, s dayScore) []any {
			return []any{uuid(c.ID), nullDate(s.day), s.score}
		}))
	w.copy(ctx, "framework_assignments", "client_id id framework_id audience_type audience_id policies created_at",
		perClient(clients, func(c *client) []frameworkUse { return c.uses }, func(c *client, f frameworkUse) []any {
			return []any{uuid(c.ID), uuid(f.id), f.framework, f.audience, f.audienceID, f.policies, f.createdAt}
		}))
	w.copy(ctx, "admins", adminColumns,
		perClient(clients, func(c *client) []domain.Admin { return c.admins }, func(c *client, a domain.Admin) []any {
			return adminRow(c.Partner, a)
		}))
	w.copy(ctx, "admin_invites", "client_id id email role created_at expires_at accepted_at",
		perClient(clients, func(c *client) []invite { return c.invites }, func(c *client, v invite) []any {
			return []any{uuid(c.ID), uuid(v.ID), v.Email, string(v.Role), v.CreatedAt, v.ExpiresAt, nullTime(v.acceptedAt)}
		}))
}

func (w *writer) userRows(ctx context.Context, clients []*client, today domain.Date) {
	users := func(c *client) []*user { return c.users }
	w.copy(ctx, "users", "client_id id email first_name last_name name_key department job_title manager_email "+
		"status role preferred_language source group_id overrides score next_due_on next_course_id "+
		"phished_sent phished_clicked phished_sent_year phished_clicked_year created_at updated_at",
		perClient(clients, users, func(c *client, u *user) []any {
			var next domain.NextCourse
			if u.Training.Next != nil {
				next = *u.Training.Next
			}
			p := &u.Phishing
			return []any{uuid(c.ID), uuid(u.ID), u.Email, u.FirstName, u.LastName, domain.SortKey(u.Name()),
				u.Department, u.JobTitle, u.ManagerEmail, string(u.Status), string(u.Role), string(u.Language),
				string(u.Source), uuid(u.Group.ID), append([]string{}, u.Overrides...), u.Score,
				nullDate(next.DueOn), nullID(next.Course), p.Sent, p.Clicked, p.SentYear, p.ClickedYear,
				u.CreatedAt, u.UpdatedAt}
		}))
	w.copy(ctx, "user_risks", "client_id user_id model baseline deltas courses_completed phishing_clicks "+
		"phishing_reports credential_submissions attachments_opened real_phish_reported password_breaches_active "+
		"password_breaches_resolved pii_breaches basic_breaches dormant_on_training computed_on computed_at",
		perClient(clients, users, func(c *client, u *user) []any {
			deltas := make([]int16, len(u.risk.Deltas))
			for i, delta := range u.risk.Deltas {
				deltas[i] = int16(delta)
			}
			t := &u.risk.Tallies
			return []any{uuid(c.ID), uuid(u.ID), domain.RiskModelVersion, u.risk.Baseline, deltas, t.CoursesCompleted,
				t.PhishingClicks, t.PhishingReports, t.CredentialSubmissions, t.AttachmentsOpened, t.RealPhishReported,
				t.PasswordBreachesActive, t.PasswordBreachesResolved, t.PIIBreaches, t.BasicBreaches,
				t.DormantOnTraining, nullDate(today), today.Time()}
		}))
}

func (w *writer) training(ctx context.Context, clients []*client, today domain.Date) {
	w.copy(ctx, "assignments", "client_id user_id course_id round position from_program frameworks assigned_at due_on "+
		"completed_at overdue_noted",
		perUser(clients, func(u *user) []assignment { return u.training }, func(c *client, u *user, a *assignment) []any {
			return []any{uuid(c.ID), uuid(u.ID), uuid(a.course), a.round, a.position, a.program,
				append([][16]byte{}, a.frameworks...), a.assignedAt, nullDate(a.dueOn), nullTime(a.completedAt),
				a.dueOn.Before(today)} // what is overdue by now is history, and no event
		}))
}

func (w *writer) phishing(ctx context.Context, clients []*client) {
	w.copy(ctx, "phishing_results", "client_id id user_id template_id status reported automated automated_reason "+
		"send_at sent_at opened_at attachment_opened_at clicked_at credentials_submitted_at reported_at failed_at "+
		"failure created_at updated_at",
		perUser(clients, func(u *user) []simulation { return u.simulations }, func(c *client, u *user, s *simulation) []any {
			return []any{uuid(c.ID), uuid(s.id), uuid(u.ID), uuid(s.template.id), s.status(), !s.reportedAt.IsZero(),
				s.automated != "", nullText(string(s.automated)), s.sendAt, nullTime(s.sentAt), nullTime(s.openedAt),
				nullTime(s.attachmentAt), nullTime(s.clickedAt), nullTime(s.credentialsAt), nullTime(s.reportedAt),
				nullTime(s.failedAt()), nullText(s.failure), s.createdAt, s.updatedAt()}
		}))
	w.copy(ctx, "template_uses", "client_id template_id used",
		perClient(clients, (*client).templateUses, func(c *client, t templateUse) []any {
			return []any{uuid(c.ID), uuid(t.id), t.used}
		}))
	w.copy(ctx, "phishing_days", "client_id day sent opened clicked reported credentials_submitted attachments_opened",
		perClient(clients, func(c *client) []phishingDay { return c.days }, func(c *client, d phishingDay) []any {
			return []any{uuid(c.ID), nullDate(d.day), d.sent, d.opened, d.clicked, d.reported, d.credentials, d.attachments}
		}))
}

// signals writes what else happened to users: the mails that they reported, their
// exposures, and the mails that they were sent.
func (w *writer) signals(ctx context.Context, clients []*client) {
	reported := func(u *user) []reportedEmail { return u.reported }
	w.copy(ctx, "reported_emails", "client_id id user_id message_id subject sender classification mailbox_action "+
		"reported_at classified_at updated_at",
		perUser(clients, reported, func(c *client, u *user, r *reportedEmail) []any {
			return []any{uuid(c.ID), uuid(r.id), uuid(u.ID), r.messageID, r.subject, r.sender, r.classification,
				nullText(r.action), r.reportedAt, nullTime(r.classifiedAt), latestTime(r.reportedAt, r.classifiedAt)}
		}))
	w.copy(ctx, "exposures", "client_id user_id breach_name severity data_classes first_seen_at notified_at "+
		"resolved_at updated_at",
		perUser(clients, func(u *user) []exposure { return u.exposures }, func(c *client, u *user, e *exposure) []any {
			return []any{uuid(c.ID), uuid(u.ID), e.breach.name, string(e.breach.severity), e.breach.classes, e.seenAt,
				nullTime(e.notifiedAt), nullTime(e.resolvedAt), latestTime(e.seenAt, e.notifiedAt, e.resolvedAt)}
		}))
	w.copy(ctx, "sent_emails", "client_id user_id id sent_at from_email subject send_method message_type",
		perUser(clients, func(u *user) []sentEmail { return u.sent }, func(c *client, u *user, m *sentEmail) []any {
			return []any{uuid(c.ID), uuid(u.ID), uuid(m.id), m.at, m.from, m.subject, m.method, m.kind}
		}))
}

// collections writes those that were deleted too, and deletes them again, so that the
// triggers of the table see them.
func (w *writer) collections(ctx context.Context, clients []*client) {
	all := func(c *client) []collection { return slices.Concat(c.collections, c.deletedCollections) }
	w.copy(ctx, "collections", "client_id id name name_key description member_count created_by created_at updated_at",
		perClient(clients, all, func(c *client, k collection) []any {
			return []any{uuid(c.ID), uuid(k.id), k.name, domain.SortKey(k.name), nullText(k.description), len(k.members),
				k.createdBy, k.createdAt, k.updatedAt}
		}))
	members := func(c *client) []member { return flat(c.collections, func(k collection) []member { return k.members }) }
	w.copy(ctx, "collection_members", "client_id collection_id user_id added_at",
		perClient(clients, members, func(c *client, m member) []any {
			return []any{uuid(c.ID), uuid(m.of), uuid(m.user.ID), m.at}
		}))
	for _, c := range clients {
		for _, k := range c.deletedCollections {
			w.exec(ctx, "delete a collection", "DELETE FROM collections WHERE client_id = $1::uuid AND id = $2::uuid",
				c.ID.UUID(), k.id.UUID())
		}
	}
}

func (w *writer) policies(ctx context.Context, clients []*client) {
	w.copy(ctx, "policies", "client_id id title description version scope_type scope_id requires_acknowledgment "+
		"renewal_period_days reviewed_at archived_at created_at updated_at",
		perClient(clients, func(c *client) []policy { return c.policies }, func(c *client, p policy) []any {
			return []any{uuid(c.ID), uuid(p.id), p.title, nullText(p.description), p.version, p.scope, p.scopeID,
				p.acknowledged, p.renewal, p.reviewedAt, nullTime(p.archivedAt), p.createdAt,
				latestTime(p.reviewedAt, p.archivedAt)}
		}))
	signatures := func(c *client) []signature {
		return flat(c.policies, func(p policy) []signature { return p.signatures })
	}
	w.copy(ctx, "policy_signatures", "client_id policy_id user_id version signed_at",
		perClient(clients, signatures, func(c *client, s signature) []any {
			return []any{uuid(c.ID), uuid(s.of), uuid(s.user), s.version, s.at}
		}))
}

func (w *writer) reports(ctx context.Context, clients []*client) {
	w.copy(ctx, "reports", "client_id id type format status period_start period_end created_at updated_at",
		perClient(clients, func(c *client) []domain.Report { return c.reports }, func(c *client, r domain.Report) []any {
			var period domain.ReportPeriod
			if r.Period != nil {
				period = *r.Period
			}
			return []any{uuid(c.ID), uuid(r.ID), string(r.Type), string(r.Format), string(r.Status),
				nullDate(period.Start), nullDate(period.End), r.CreatedAt, r.UpdatedAt}
		}))
}
