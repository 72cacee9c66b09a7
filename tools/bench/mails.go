package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"

	"github.com/emersion/go-smtp"

	"partnerapi/domain"
)

// manyClients is how many clients have mail due at once: those of a cell of a million
// users.
const manyClients = 15_000

// manyMails compares mails to many clients, one to each, with as many to one client.
func (b *bench) manyMails(ctx context.Context) figure {
	n := b.tenth(manyClients)
	many := b.sendTo(ctx, n, 1)
	one := b.sendTo(ctx, 1, n)
	return figure{value: many.value / one.value, ours: many.ours, reference: one.ours, peak: many.peak}.about(", %d of them", n)
}

// sendTo measures how quickly mails go out that are due, some to each of so many clients
// of a partner of their own.
func (b *bench) sendTo(ctx context.Context, clients, each int) figure {
	partner := b.mailPartner(ctx, clients, each)
	defer b.forget(ctx, partner)
	s := &sink{}
	address, end := s.mailServer()
	defer end()
	return b.drained("work", params{SMTP: "smtp://" + address}, s, clients*each, func() bool {
		return b.data.count(ctx, "SELECT count(*) FROM outbox") == 0
	})
}

// mailServer serves SMTP until end.
func (s *sink) mailServer() (address string, end func()) {
	server := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return session{s}, nil }))
	server.ErrorLog = log.New(io.Discard, "", 0)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() { _ = server.Serve(listener) }()
	return listener.Addr().String(), func() { _ = server.Close() }
}

// mailPartner makes a partner with clients like the first one, each with users to whom a
// mail is due.
func (b *bench) mailPartner(ctx context.Context, clients, users int) domain.PartnerID {
	d := b.data
	d.exec(ctx, "DELETE FROM outbox") // what an earlier run left behind would be sent too
	partner := all[domain.PartnerID](ctx, d, `INSERT INTO partners SELECT (jsonb_populate_record(p, jsonb_build_object(
		'id', gen_random_uuid(), 'name', $2::text, 'name_key', $2))).* FROM partners AS p WHERE id = $1 RETURNING id`,
		d.partner, fmt.Sprintf("mails to %d clients", clients))[0]
	d.exec(ctx, `INSERT INTO clients SELECT (jsonb_populate_record(c, jsonb_build_object(
			'id', gen_random_uuid(), 'partner_id', $2::uuid, 'name', n::text, 'name_key', n::text))).*
		FROM clients AS c, generate_series(1, $3::integer) AS n WHERE c.id = $1`, d.clients[0], partner, clients)
	d.exec(ctx, `INSERT INTO users SELECT (jsonb_populate_record(u, jsonb_build_object(
			'id', gen_random_uuid(), 'client_id', c.id, 'group_id', NULL, 'email', n || '@many.example'))).*
		FROM users AS u, clients AS c, generate_series(1, $3::integer) AS n WHERE c.partner_id = $2 AND u.client_id = $1
			AND u.id = (SELECT id FROM users WHERE client_id = $1 AND status = 'active' LIMIT 1)`, d.clients[0], partner, users)
	d.exec(ctx, `WITH asked AS (
			INSERT INTO mail_requests (client_id, id, type, user_id, created_at)
			SELECT u.client_id, gen_random_uuid(), 'welcome', u.id, now() FROM users AS u JOIN clients AS c ON c.id = u.client_id
			WHERE c.partner_id = $1 RETURNING client_id, id
		)
		INSERT INTO outbox (client_id, id, kind, urgency, due_at) SELECT client_id, id, 'mail', 2, now() FROM asked`, partner)
	d.exec(ctx, "ANALYZE clients, users, outbox, mail_requests")
	return partner
}

// forget deletes a partner of mailPartner.
func (b *bench) forget(ctx context.Context, partner domain.PartnerID) {
	for _, table := range []string{"outbox", "sent_emails", "mail_requests", "users"} {
		b.data.exec(ctx, "DELETE FROM "+table+" WHERE client_id IN (SELECT id FROM clients WHERE partner_id = $1)", partner)
	}
	b.data.exec(ctx, "DELETE FROM clients WHERE partner_id = $1", partner)
	b.data.exec(ctx, "DELETE FROM partners WHERE id = $1", partner)
}
