package seed

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// writeShowcaseAudit writes audit entries about the first client: of requests with the demonstration's keys, and of an
// operator's command. The ids have their own random stream, as those of events have.
func (w *writer) writeShowcaseAudit(ctx context.Context, c *client, today domain.Date, shift time.Duration) {
	ids := newRandom(auditStream, 0)
	ids.shift = shift
	user, collection := c.users[0], c.collections[0]
	for _, e := range []struct {
		daysAgo         int
		key             string // empty for a command
		operation       string
		kind, id        string
		fields          []string
		request, method string
	}{
		{90, "", "mail enable", "client", c.ID.String(), []string{"monthly-report"}, "", ""},
		{30, demoKeys.All, "collections.members.add", "collection", collection.ID.String(), []string{"user_ids"}, "9f8c2d1e-team-import", "POST"},
		{12, demoKeys.Subset, "policies.remind", "policy", c.policies[0].ID.String(), nil, "9f8c2d1e-reminders", "POST"},
		{3, demoKeys.All, "users.update", "user", user.ID.String(), []string{"job_title", "manager_email"}, "9f8c2d1e-hr-import", "PATCH"},
	} {
		at := today.AddDays(-e.daysAgo).Time().Add(9 * time.Hour)
		w.exec(ctx, "add an audit entry", `INSERT INTO audit_entries (entry_id, at, partner_id, key_id, key_prefix, address, os_user, operation,
				method, path, object_kind, object_id, fields, client_id, request_id)
			SELECT ?id, ?at, ?partner, coalesce(k.id, '00000000-0000-0000-0000-000000000000'), coalesce(k.prefix, ?command),
				CASE WHEN k.id IS NOT NULL THEN '192.0.2.10'::inet END, CASE WHEN k.id IS NULL THEN 'ops' END, ?operation,
				?method, '', ?kind, ?object, ?fields::text[], ?client, ?request
			FROM (VALUES (1)) AS one LEFT JOIN api_keys AS k ON k.partner_id = ?partner AND k.prefix = ?key`, pg.Named{
			"id": newID[domain.AuditKind](ids, at), "at": at, "partner": c.Partner, "command": domain.CommandActor, "operation": e.operation,
			"method": e.method, "kind": e.kind, "object": e.id, "fields": append([]string{}, e.fields...), "client": c.ID,
			"request": e.request, "key": e.key,
		})
	}
}
