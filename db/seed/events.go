package seed

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// writeShowcaseEvents queues the scheduled emails of the first client, and writes its sync runs, events that wait to be
// published, and a subscription with a past delivery. The subscription is paused so that the demonstration sends
// nothing. The ids have their own random stream, so that adding these objects did not change the ids of others.
func (w *writer) writeShowcaseEvents(ctx context.Context, c *client, today domain.Date, shift time.Duration) {
	ids := newRandom(eventStream, 0)
	ids.shift = shift // as for all ids of the demonstration
	at := func(daysAgo, hour int) time.Time {
		return today.AddDays(-daysAgo).Time().Add(time.Duration(hour) * time.Hour)
	}

	w.exec(ctx, "queue scheduled emails", `INSERT INTO outbox (client_id, id, kind, urgency, due_at)
		SELECT client_id, id, ?, 2 AS urgency, send_at FROM phishing_results
		WHERE client_id = ? AND status = 'scheduled' ORDER BY id`, db.SimulatedMail, c.ID)

	for daysAgo := 3; daysAgo > 0; daysAgo-- {
		queued := at(daysAgo, 2)
		started, finished := queued.Add(time.Second), queued.Add(12*time.Second)
		w.exec(ctx, "add a sync run", `INSERT INTO sync_runs
				(client_id, id, status, trigger, queued_at, started_at, finished_at, updated_at, updated, unchanged)
			VALUES (?client, ?id, ?status, ?trigger, ?queued, ?started, ?finished, ?finished, ?updated, ?unchanged)`, pg.Named{
			"client": c.ID, "id": newID[domain.SyncRunKind](ids, queued), "status": domain.SyncCompleted,
			"trigger": domain.SyncBySchedule, "queued": queued, "started": started, "finished": finished,
			"updated": daysAgo, "unchanged": len(c.users) - daysAgo,
		})
	}

	updated := at(1, 9)
	var event domain.EventID // after the loop it is the last event, which was delivered
	for i, u := range c.active(anyUser)[:3] {
		event = newID[domain.EventKind](ids, updated)
		w.exec(ctx, "record an event", `INSERT INTO events (client_id, id, type, user_id, created_at, recorded_at)
			VALUES (?client, ?id, ?type, ?user, ?at, ?recorded)`, pg.Named{
			"client": c.ID, "id": event, "type": domain.UserUpdated, "user": u.ID, "at": updated,
			"recorded": updated.Add(time.Duration(i) * time.Microsecond), // events are published in this order
		})
	}

	hook := newID[domain.WebhookKind](ids, at(40, 9))
	w.exec(ctx, "add a subscription", `INSERT INTO webhooks (partner_id, id, key_id, url, events, client_ids, description, status,
			created_at, updated_at, active_since, last_delivery_at, secret)
		SELECT ?partner, ?id, k.id, 'https://hooks.example.com/training', ARRAY[?type]::text[], ARRAY[?client]::uuid[],
			'Ticket for every change of a user', 'paused', ?created, ?last, ?created, ?last, ''
		FROM api_keys AS k WHERE k.partner_id = ?partner AND k.prefix = ?prefix`, pg.Named{
		"partner": c.Partner, "id": hook, "type": domain.UserUpdated, "client": c.ID,
		"created": at(40, 9), "last": at(1, 10), "prefix": demoKeys.All,
	})
	// Position 0 is that of no event: the delivered one is not published yet.
	w.exec(ctx, "add a delivery", `INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type,
			status, created_at, queued_at, due_at, first_try_at, tries)
		VALUES (?webhook, ?id, ?partner, 0, ?client, ?event, ?type, 'succeeded', ?at, ?at, ?at, ?at,
			jsonb_build_array(jsonb_build_object('at', ?atText::text, 'status_code', 204, 'duration_ms', 41, 'response', '')))`, pg.Named{
		"webhook": hook, "id": newID[domain.DeliveryKind](ids, updated), "partner": c.Partner, "client": c.ID, "event": event,
		"type": domain.UserUpdated, "at": updated, "atText": updated.Format(time.RFC3339),
	})
}

// SealSubscription gives a secret to each subscription without one. Only that of the demonstration has none: it is
// created before there is an encryption key. seal encrypts a secret, with a context that is authenticated.
func SealSubscription(ctx context.Context, d *db.DB, seal func(plain, context []byte) ([]byte, error)) error {
	ids, err := pg.All[domain.WebhookID](ctx, d, "look for a subscription without a secret", pg.SQL("SELECT id FROM webhooks WHERE secret = ''"))
	if err != nil {
		return err
	}
	for _, id := range ids {
		sealed, err := seal([]byte(domain.NewWebhookSecret()), domain.WebhookSecretContext(id))
		if err != nil {
			return err
		}
		err = pg.Run(ctx, d, "give a subscription a secret", pg.SQL("UPDATE webhooks SET secret = ? WHERE id = ? AND secret = ''", sealed, id))
		if err != nil {
			return err
		}
	}
	return nil
}
