package v2_test

import (
	"fmt"
	"sync/atomic"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/seal"
	"partnerapi/v2/v2test"
)

// parts are what a client has besides users.
type parts struct {
	collections []domain.CollectionID
	policies    []domain.PolicyID
	frameworks  []domain.FrameworkAssignmentID
	template    domain.TemplateID
	results     []domain.ResultID // scheduled
	report      domain.ReportID
	webhook     domain.WebhookID
	delivery    domain.DeliveryID
	next        atomic.Int64
}

const breach = "Sample_Breach"

// furnish gives a client n collections, which the user is in, n overrides of the user that are no fields, n policies for all of
// its users, n framework assignments, n scheduled simulated mails and a directory, and
// makes it watched, with a resolved exposure of the user. It is all plain SQL.
func furnish(h *v2test.Harness, client domain.ClientID, user domain.UserID, n int) *parts {
	p := &parts{template: domain.TemplateID{15: 9}, report: db.NewID[domain.ReportKind]()}
	var collections, policies, frameworks, results []string
	for range n {
		c, policy := db.NewID[domain.CollectionKind](), db.NewID[domain.PolicyKind]()
		p.collections, p.policies = append(p.collections, c), append(p.policies, policy)
		collections, policies = append(collections, c.UUID()), append(policies, policy.UUID())
		framework := db.NewID[domain.FrameworkAssignmentKind]()
		p.frameworks, frameworks = append(p.frameworks, framework), append(frameworks, framework.UUID())
		result := db.NewID[domain.ResultKind]()
		p.results, results = append(p.results, result), append(results, result.UUID())
	}
	now := h.Clock.Now()
	h.Exec(`INSERT INTO collections (client_id, id, name, name_key, member_count, created_by, created_at, updated_at)
		SELECT $1, id, id::text, id::text, 1, 'api', $3, $3 FROM unnest($2::text[]::uuid[]) AS id`, client, collections, now)
	h.Exec(`INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
		SELECT $1, id, $3, $4 FROM unnest($2::text[]::uuid[]) AS id`, client, collections, user, now)
	h.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at, created_at, updated_at)
		SELECT $1, id, 'Acceptable use', 'tenant', $1, true, $3, $3, $3 FROM unnest($2::text[]::uuid[]) AS id`, client, policies, now)
	h.Exec(`INSERT INTO framework_assignments (client_id, id, framework_id, audience_type, audience_id, evaluated_at, created_at)
		SELECT $1, id, 'gdpr', 'group', id, $3, $3 FROM unnest($2::text[]::uuid[]) AS id`, client, frameworks, now)
	h.Exec("UPDATE clients SET framework_ids = '{gdpr}' WHERE id = $1", client)
	h.Exec("UPDATE users SET overrides = ARRAY(SELECT 'sample_' || lpad(n::text, 3, '0') FROM generate_series(0, $2::integer - 1) AS n) WHERE id = $1", user, n)
	h.Exec("INSERT INTO breaches (name, title, severity, data_classes) VALUES ($1, 'Sample', 'low', '{Names}') ON CONFLICT DO NOTHING", breach)
	h.Exec(`INSERT INTO exposures (client_id, user_id, breach_name, severity, data_classes, first_seen_at, resolved_at)
		VALUES ($1, $2, $3, 'low', '{Names}', $4, $4)`, client, user, breach, now)
	h.Exec("UPDATE clients SET dark_web_monitoring = true WHERE id = $1", client)
	h.Exec(`INSERT INTO phishing_templates (id, name, language, category, subject, from_address, html, body, created_at)
		VALUES ($1, 'Sample', 'en', 'it', 'Sample', 'it@example.com', '', '', $2) ON CONFLICT DO NOTHING`, p.template, now)
	h.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, created_at, updated_at)
		SELECT $1, id, $3, $4, 'scheduled', $5::timestamptz + interval '1 year', $5, $5 FROM unnest($2::text[]::uuid[]) AS id`,
		client, results, user, p.template, now)
	h.Exec(`INSERT INTO outbox (client_id, id, kind, urgency, due_at)
		SELECT client_id, id, 'simulation', 2, send_at FROM phishing_results WHERE client_id = $1 AND status = 'scheduled'`, client)
	h.Exec("INSERT INTO template_uses (client_id, template_id, used) VALUES ($1, $2, $3)", client, p.template, n)
	h.Exec(`INSERT INTO directory_connections (client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
		VALUES ($1, 'google', '{}', '', 'infinity', $2, $2)`, client, now)
	endRuns(h)
	h.Exec(`INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
		VALUES ($1, $2, 'policy', 'pdf', 'ready', $3, $3)`, client, p.report, now.Add(-24*time.Hour))
	p.webhook, p.delivery = subscribe(h, client)
	return p
}

// longAgo is when the webhooks of furnish were made, which none of the API is.
var longAgo = v2test.Noon.AddDate(0, -3, 0)

// subscribe gives a client's partner a webhook that is limited to the client, with
// one delivery. It can't be deleted, and those that the API made make room for
// others.
func subscribe(h *v2test.Harness, client domain.ClientID) (domain.WebhookID, domain.DeliveryID) {
	id, delivery := db.NewID[domain.WebhookKind](), db.NewID[domain.DeliveryKind]()
	var sealed []byte
	if h.Keys != nil {
		var err error
		if sealed, err = h.Keys.Seal([]byte("whsec_"+id.UUID()), seal.Context("webhook", id.UUID())); err != nil {
			h.T.Fatal(err)
		}
	}
	keepWebhooks(h)
	h.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, events, client_ids, status, created_at, updated_at, secret)
		SELECT c.partner_id, $2, k.id, 'https://example.com/hook', '{user.created}', ARRAY[c.id], 'active', $3, $3, coalesce($4::bytea, '')
		FROM clients AS c, LATERAL (SELECT id FROM api_keys WHERE partner_id = c.partner_id AND all_clients ORDER BY id LIMIT 1) AS k
		WHERE c.id = $1`, client, id, longAgo, sealed)
	h.Exec(`WITH head AS (UPDATE event_head SET position = position + 1 RETURNING position)
		INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
		SELECT partner_id, n, id, gen_random_uuid(), 'user.created', $2, `+plainEvent+` FROM clients AS c, head AS h (n) WHERE c.id = $1`, client, h.Clock.Now())
	h.Exec(`INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, status, created_at, due_at, tries)
		SELECT $2, $3, partner_id, position, client_id, id, type, 'failed', $4, $4,
			'[{"at":"2026-06-14T12:00:00Z","status_code":500,"duration_ms":7,"response":"no"}]'
		FROM published_events WHERE client_id = $1`, client, id, delivery, h.Clock.Now())
	return id, delivery
}

// keepWebhooks keeps the webhooks of long ago, and only the newest of the others.
func keepWebhooks(h *v2test.Harness) {
	h.Exec(`CREATE OR REPLACE FUNCTION keep_webhook() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN IF OLD.created_at < '2026-06-01' THEN RETURN NULL; END IF; RETURN OLD; END $$`)
	h.Exec(`CREATE OR REPLACE FUNCTION drop_webhooks() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN DELETE FROM webhooks WHERE partner_id = NEW.partner_id AND id <> NEW.id; RETURN NULL; END $$`)
	h.Exec("CREATE OR REPLACE TRIGGER keep_webhook BEFORE DELETE ON webhooks FOR EACH ROW EXECUTE FUNCTION keep_webhook()")
	h.Exec("CREATE OR REPLACE TRIGGER drop_webhooks AFTER INSERT ON webhooks FOR EACH ROW EXECUTE FUNCTION drop_webhooks()")
}

// endRuns makes every sync run one that ended long ago, so that the next may be
// asked for.
func endRuns(h *v2test.Harness) {
	h.Exec(`CREATE OR REPLACE FUNCTION end_run() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN NEW.status := 'completed'; NEW.queued_at := NEW.queued_at - interval '1 hour'; RETURN NEW; END $$`)
	h.Exec("CREATE OR REPLACE TRIGGER end_run BEFORE INSERT ON sync_runs FOR EACH ROW EXECUTE FUNCTION end_run()")
}

// with are the ids of one part of each kind, another each time.
func (p *parts) with(client domain.ClientID, user domain.UserID) ids {
	n := p.next.Add(1) % int64(len(p.collections))
	return ids{
		"client_id": client.String(), "user_id": user.String(),
		"collection_id": p.collections[n].String(), "policy_id": p.policies[n].String(), "breach_name": breach,
		"assignment_id": p.frameworks[n].String(), "report_id": p.report.String(),
		"webhook_id": p.webhook.String(), "delivery_id": p.delivery.String(), "result_id": p.results[n].String(),
		"field": fmt.Sprintf("sample_%03d", n),
	}
}
