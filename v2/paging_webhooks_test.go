package v2_test

import (
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// webhook makes a tenant have a webhook that is limited to a client.
func (p *pagedTable) webhook(tenant v2test.Tenant, client domain.ClientID, id domain.WebhookID, r pagedRow) {
	p.h.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, events, client_ids, status, created_at, updated_at, secret)
		SELECT $1, $2, id, 'https://example.com', '{user.created}', ARRAY[$3::uuid], 'active', $4, $5, '' FROM api_keys WHERE partner_id = $1 AND all_clients
		ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at, updated_at = excluded.updated_at`,
		tenant.ID, id, client, r.created, r.updated)
}

// pagedWebhooks: another partner has webhooks that were made at the same moments, and
// a key sees those of its client alone.
func pagedWebhooks(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 51)
	other := p.h.Tenant("Other")
	p.client = p.h.Client(p.tenant, "Client").ID
	beside, theirs := p.h.Client(p.tenant, "Beside").ID, p.h.Client(other, "Client").ID
	p.of(api.ListWebhooks, ids{}, "id")
	p.show = func(uuid [16]byte) string { return domain.WebhookID(uuid).String() }
	p.store = func(r pagedRow) {
		client := p.client
		if r.score == 600 { // which touching does not change
			client = beside
		}
		p.h.Exec("DELETE FROM webhooks WHERE id = $1", domain.WebhookID(r.uuid))
		p.webhook(p.tenant, client, r.uuid, r)
		p.webhook(other, theirs, pagedTwin(r.uuid, 1), r)
	}
	p.drop = func(r pagedRow) { p.h.Exec("DELETE FROM webhooks WHERE id = $1", domain.WebhookID(r.uuid)) }
	p.fill(rows)
	p.add("all", "", pagedAll)
	p.lists = append(p.lists, pagedList{
		name: "of a subset key", order: p.order, key: p.h.NewKey(p.tenant, bothScopes, []domain.ClientID{p.client}),
		holds: func(r pagedRow) bool { return r.score != 600 },
	})
	return p
}

// pagedDeliveries: another webhook has deliveries with the same ids.
func pagedDeliveries(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 52)
	p.order = "-created_at"
	p.client = p.h.Client(p.tenant, "Client").ID
	own, other := domain.WebhookID{15: 1}, domain.WebhookID{15: 2}
	for _, id := range []domain.WebhookID{own, other} {
		p.webhook(p.tenant, p.client, id, pagedRow{created: v2test.Noon, updated: v2test.Noon})
	}
	p.of(api.ListDeliveries, ids{"webhook_id": own.String()}, "id")
	p.show = func(uuid [16]byte) string { return domain.DeliveryID(uuid).String() }
	p.store = func(r pagedRow) {
		for _, webhook := range []domain.WebhookID{own, other} {
			p.h.Exec(`INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, status, created_at, due_at)
				VALUES ($1, $2, $3, 1, $4, $2, 'user.created', 'failed', $5, $5)
				ON CONFLICT (webhook_id, id) DO UPDATE SET created_at = excluded.created_at`,
				webhook, domain.DeliveryID(r.uuid), p.tenant.ID, p.client, r.created)
		}
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND id = $2", own, domain.DeliveryID(r.uuid))
	}
	p.fill(rows)
	p.add("all", "", pagedAll)
	p.lists = append(p.lists, pagedList{
		name: "of a subset key", order: p.order, key: p.h.NewKey(p.tenant, bothScopes, []domain.ClientID{p.client}), holds: pagedAll,
	})
	return p
}
