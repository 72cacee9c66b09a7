package main

import (
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
)

// subscribed adds a webhook of a partner's key, of an unreadable secret, with a
// waiting and a failed delivery.
func subscribed(t *testing.T, d *db.DB, partner string) domain.WebhookID {
	t.Helper()
	id := db.NewID[domain.WebhookKind]()
	for _, sql := range []string{
		`INSERT INTO webhooks (partner_id, id, key_id, url, events, status, created_at, updated_at, secret)
			SELECT p.id, $1, k.id, 'https://example.com/hook', '{user.created,report.ready}', 'active', now(), now(), 'top secret'
			FROM partners AS p JOIN api_keys AS k ON k.partner_id = p.id WHERE p.name = $2`,
		`INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, status, created_at, due_at, tries)
			SELECT w.id, md5(s)::uuid, w.partner_id, 1, gen_random_uuid(), gen_random_uuid(), 'user.created', s, now(), now(),
				'[{"at":"2026-06-14T12:00:00Z","status_code":500,"duration_ms":7,"response":"oh\u001b[31m\nno"}]'
			FROM webhooks AS w, unnest('{waiting,failed}'::text[]) AS s WHERE w.id = $1 AND $2 <> ''`,
	} {
		execute(t, d, sql, id, partner)
	}
	return id
}

// TestWebhookCommands lists webhooks and deliveries, pauses one and resumes it.
func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	d := opened(t, flag)
	for _, partner := range []string{"Acme", "Brick"} {
		insertClients(t, d, partner, "Client")
		must(t, "keys", "create", "--name=k", "--partner="+partner, "--clients=all", "--scopes=read", flag)
	}
	ours, theirs := subscribed(t, d, "Acme"), subscribed(t, d, "Brick")

	list := must(t, "webhooks", "list", flag)
	says(t, list, ours.String(), "https://example.com/hook")
	if strings.Count(list, "\n") != 3 || strings.Contains(list, "secret") || strings.Index(list, "Acme") > strings.Index(list, "Brick") {
		t.Errorf("lists %s", list)
	}
	if got := must(t, "webhooks", "list", "--partner=brick", flag); strings.Count(got, "\n") != 2 || !strings.Contains(got, theirs.String()) {
		t.Errorf("lists %s", got)
	}
	deliveries := func(of domain.WebhookID, rows int, words string, flags ...string) {
		t.Helper()
		got := must(t, append([]string{"webhooks", "deliveries", of.String(), flag}, flags...)...)
		if strings.Count(got, "\n") != rows+1 || !strings.Contains(got, words) {
			t.Errorf("lists %s", got)
		}
	}
	says(t, must(t, "webhooks", "list", "--json", flag), `"status": "active"`)
	says(t, must(t, "webhooks", "deliveries", ours.String(), "--json", flag), `"tries": [`)
	deliveries(ours, 2, `500 oh\u{1b}[31m no`)
	deliveries(ours, 1, "failed", "--status=failed", "--limit=1")
	if got := must(t, "webhooks", "pause", ours.String(), flag); got != ours.String()+" is paused; it was active\n" {
		t.Errorf("pausing prints %s", got)
	}
	deliveries(ours, 1, "the subscription was paused", "--status=dropped")
	deliveries(theirs, 1, "", "--status=waiting")
	if got := must(t, "webhooks", "resume", ours.String(), flag); got != ours.String()+" is active; it was paused\n" {
		t.Errorf("resuming prints %s", got)
	}

	stranger := db.NewID[domain.WebhookKind]().String()
	for _, command := range []string{"pause", "resume", "deliveries"} {
		refused(t, 1, []string{"webhooks", command, stranger, flag}, "there is no webhook "+stranger)
		refused(t, 2, []string{"webhooks", command, "whk_x", flag}, "<id>: not an ID of this kind")
	}
	refused(t, 2, []string{"webhooks", "deliveries", stranger, "--limit=0", flag}, "--limit")
	refused(t, 2, []string{"webhooks", "deliveries", stranger, "--status=lost", flag}, "--status")
}
