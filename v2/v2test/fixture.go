package v2test

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/db/ingest"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// Partner is a partner with a key that has access to all of its clients.
type Partner struct {
	ID  domain.PartnerID
	Key string
	// Ctx is a context in which the key makes calls in process.
	Ctx context.Context
}

// AddPartner adds a partner.
func (h *Harness) AddPartner(name string) Partner {
	h.T.Helper()
	id, err := h.DB.InsertPartner(h.T.Context(), name)
	h.Must(err)
	p := Partner{ID: id}
	p.Key = h.AddKey(p, []domain.Scope{domain.Read, domain.Write}, nil)
	p.Ctx = h.As(p.Key)
	return p
}

// AddKey adds a key of the partner; nil clients give it access to all.
func (h *Harness) AddKey(p Partner, scopes []domain.Scope, clients []domain.ClientID) string {
	h.T.Helper()
	key, err := h.DB.CreateKey(h.T.Context(), db.NewKey{Partner: p.ID, Name: "test", Scopes: scopes, Clients: clients})
	h.Must(err)
	return key
}

// As returns a context in which the key makes calls in process.
func (h *Harness) As(key string) context.Context {
	h.T.Helper()
	caller, err := h.DB.CallerByDigest(h.T.Context(), db.KeyDigest(key))
	h.Must(err)
	return domain.WithCaller(h.T.Context(), caller)
}

// AddClient adds a client of the partner.
func (h *Harness) AddClient(p Partner, name string) api.Client {
	h.T.Helper()
	in := &api.CreateClientInput{}
	in.Body.Name = name
	c, err := op.Call(p.Ctx, &h.API.Set, api.CreateClient, in)
	h.Must(err)
	return *c
}

// CountClients counts the clients of all partners again, after SQL that added or archived clients.
func (h *Harness) CountClients() {
	h.T.Helper()
	h.Exec(`UPDATE partners AS p SET client_count =
		(SELECT count(*) FROM clients AS c WHERE c.partner_id = p.id AND c.archived_at IS NULL)`)
}

// AddUser adds a user of the client.
func (h *Harness) AddUser(p Partner, client domain.ClientID, email string) api.User {
	h.T.Helper()
	in := &api.CreateUserInput{}
	in.Path.ClientID = client
	in.Body.Email = email
	in.Body.FirstName, in.Body.LastName = "Ada", "Example"
	u, err := op.Call(p.Ctx, &h.API.Set, api.CreateUser, in)
	h.Must(err)
	return *u
}

// AddCollection adds a collection of the client, by SQL.
func (h *Harness) AddCollection(client domain.ClientID, name string) domain.CollectionID {
	h.T.Helper()
	id := db.NewID[domain.CollectionKind]()
	h.Exec(`INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
		VALUES ($1, $2, $3, $4, 'dashboard', $5, $5)`, client, id, name, domain.SortKey(name), h.Clock.Now())
	return id
}

// Signal applies a signal of the platform, with a new id. A refusal fails the test.
func (h *Harness) Signal(s domain.Signal) {
	h.T.Helper()
	if refusal := h.Ingest(s); refusal != "" {
		h.T.Fatalf("%s is refused: %s", s.Type, refusal)
	}
}

// Ingest is Signal for a signal that may be refused: it returns the reason, empty if it was applied.
func (h *Harness) Ingest(s domain.Signal) (refusal string) {
	h.T.Helper()
	s.ID = db.NewID[domain.EventKind]().String()
	results, err := ingest.Apply(h.T.Context(), h.DB, []domain.Signal{s})
	h.Must(err)
	return results[0].Refusal
}

// Email returns an email address with a number.
func Email(n int) string { return fmt.Sprintf("user%04d@example.com", n) }

// Publish publishes all pending events, as the background work does, and returns how many were published.
func (h *Harness) Publish() (n int) {
	h.T.Helper()
	const batch = 500
	for {
		done, err := outbox.PublishEvents(h.T.Context(), h.DB, batch, h.API.RenderEvents)
		h.Must(err)
		h.Must(done.Reason)
		if done.Busy { // another publisher holds the lock; one that died may hold it for a moment
			continue
		}
		if n += len(done.Published); done.Taken() < batch {
			return n
		}
	}
}
