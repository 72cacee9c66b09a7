package v2_test

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// logWorld is a service with an audit trail: a partner with the clients north, south and old, which is archived.
type logWorld struct {
	*v2test.Harness
	tenant            v2test.Partner
	north, south, old api.Client
}

func newLogWorld(t *testing.T) *logWorld {
	w := &logWorld{Harness: v2test.New(t, v2test.Options{Limits: v2test.Unlimited, Audit: true})}
	w.tenant = w.AddPartner("Partner")
	w.north, w.south, w.old = w.AddClient(w.tenant, "North"), w.AddClient(w.tenant, "South"), w.AddClient(w.tenant, "Old")
	return w
}

// change changes a client as a key, a second after the last change.
func (w *logWorld) change(key string, c api.Client) {
	w.T.Helper()
	w.Clock.Advance(time.Second)
	body := fmt.Sprintf(`{"external_id": %q}`, w.Clock.Now().Format(time.RFC3339))
	w.Do("PATCH", "/v2/clients/"+c.ID.String(), key, body, "X-Request-Id", "of-"+c.Name).Want(http.StatusOK)
}

// command leaves the entry of a command.
func (w *logWorld) command(e domain.AuditEntry) {
	w.T.Helper()
	w.Clock.Advance(time.Second)
	e.Prefix, e.SystemUser = domain.CommandActor, "root"
	w.Must(w.DB.Audit(w.T.Context(), e))
}

func (w *logWorld) log(key, query string) []api.AuditEntry {
	w.T.Helper()
	var page struct{ Data []api.AuditEntry }
	w.Get("/v2/audit-log?limit=500&"+query, key).Want(http.StatusOK).Into(&page)
	return page.Data
}

// shown are the entries of a list in short: the operation, who made the change, and the name of the client. A * marks an
// entry with the name and the IP address of its key.
func (w *logWorld) shown(key, query string) (lines []string) {
	w.T.Helper()
	names := map[domain.ClientID]string{w.north.ID: "north", w.south.ID: "south", w.old.ID: "old"}
	for _, e := range w.log(key, query) {
		line := e.Operation
		if e.Actor.KeyPrefix != nil {
			line += " " + *e.Actor.KeyPrefix
		}
		if e.ClientID != nil {
			line += " " + names[*e.ClientID]
		}
		if e.Actor.KeyName != nil && *e.Actor.KeyName == "test" && e.IPAddress != nil && *e.IPAddress == "127.0.0.1" {
			line += " *"
		} else if e.Actor.KeyName != nil || e.IPAddress != nil {
			line += " ?"
		}
		lines = append(lines, line)
	}
	return lines
}

func prefixOf(key string) string { return domain.APIKeyPrefix(key) }

// TestAuditLogAccess verifies which entries a key sees, and of which other keys it sees the name and the IP address.
func TestAuditLogAccess(t *testing.T) {
	t.Parallel()
	w := newLogWorld(t)
	of := func(clients ...api.Client) string {
		ids := []domain.ClientID{}
		for _, c := range clients {
			ids = append(ids, c.ID)
		}
		return w.AddKey(w.tenant, bothScopes, ids)
	}
	all, north, two, south, empty := w.tenant.Key, of(w.north), of(w.north, w.south), of(w.south, w.old), of()
	stranger := w.AddPartner("Stranger")
	theirs := w.AddClient(stranger, "Theirs")

	var entries []string // of the partner, newest first
	change := func(key string, c api.Client, name string) string {
		w.change(key, c)
		entries = append([]string{"clients.update " + prefixOf(key) + " " + name}, entries...)
		return entries[0]
	}
	byNorth, byTwo, bySouth := change(north, w.north, "north"), change(two, w.north, "north"), change(south, w.south, "south")
	byAll, ofOld := change(all, w.north, "north"), change(south, w.old, "old")
	w.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", w.old.ID, w.Clock.Now())
	w.CountClients()
	w.change(stranger.Key, theirs)
	w.command(domain.AuditEntry{Operation: "mail disable", Client: w.north.ID}) // it names no partner
	w.command(domain.AuditEntry{Operation: "partners rename", Partner: w.tenant.ID})
	w.command(domain.AuditEntry{Operation: "seed"})
	w.command(domain.AuditEntry{Operation: "mail disable", Client: theirs.ID})
	w.Do("POST", "/v2/webhooks", two, `{"url":"https://example.com/","events":["user.created"],"client_ids":["`+w.north.ID.String()+`"]}`).Want(http.StatusCreated)
	w.Clock.Advance(time.Second)

	full := func(lines ...string) []string {
		out := []string{"webhooks.create " + prefixOf(two) + " *", "partners rename", "mail disable north"}
		for _, line := range lines {
			out = append(out, line+" *")
		}
		return out
	}
	cases := map[string][]string{
		all + " ":                                full(entries...),
		north + " ":                              {"mail disable north", byAll, byTwo, byNorth + " *"},
		two + " ":                                {"webhooks.create " + prefixOf(two) + " *", "mail disable north", byAll, bySouth, byTwo + " *", byNorth + " *"},
		south + " ":                              {ofOld + " *", bySouth + " *"},
		empty + " ":                              nil,
		all + " client_id=" + w.old.ID.String():  {ofOld + " *"},
		all + " client_id=" + theirs.ID.String(): nil,
		all + " client_id=" + strangers()["client_id"]:                     nil,
		all + " client_id=x":                                               nil,
		all + " key=" + prefixOf(south):                                    {ofOld + " *", bySouth + " *"},
		all + " key=" + prefixOf(stranger.Key):                             nil,
		all + " key=command":                                               nil,
		all + " key=pk_unknown":                                            nil,
		all + " operation=mail%20disable":                                  {"mail disable north"},
		all + " operation=clients":                                         nil,
		north + " client_id=" + w.north.ID.String():                        {"mail disable north", byAll, byTwo, byNorth + " *"},
		north + " client_id=" + w.south.ID.String():                        nil,
		north + " key=" + prefixOf(two):                                    {byTwo},
		north + " key=" + prefixOf(north):                                  {byNorth + " *"},
		north + " key=" + prefixOf(stranger.Key):                           nil,
		two + " key=" + prefixOf(two):                                      {"webhooks.create " + prefixOf(two) + " *", byTwo + " *"},
		two + " key=" + prefixOf(south):                                    {bySouth},
		two + " operation=mail%20disable&client_id=" + w.north.ID.String(): {"mail disable north"},
	}
	for request, want := range cases {
		key, query, _ := strings.Cut(request, " ")
		if got := w.shown(key, query); !slices.Equal(got, want) {
			t.Errorf("%s of %s:\n%q, want\n%q", query, prefixOf(key), got, want)
		}
		slices.Reverse(want)
		if got := w.shown(key, query+"&sort=at"); !slices.Equal(got, want) {
			t.Errorf("%s of %s, oldest first:\n%q, want\n%q", query, prefixOf(key), got, want)
		}
	}
	if got := w.shown(stranger.Key, ""); len(got) != 2 || !strings.HasPrefix(got[0], "mail disable") {
		t.Errorf("the other partner's log is %q", got)
	}
}

// TestAuditLogEntries verifies what an entry shows of a request, of a command and of objects without an ID in v2, and that
// no value of a request is in the log.
func TestAuditLogEntries(t *testing.T) {
	t.Parallel()
	w := newLogWorld(t)
	path := "/v2/clients/" + w.north.ID.String()
	r := w.Do("POST", path+"/users", w.tenant.Key, `{"email":"secret.value@example.com","first_name":"Secret"}`, "X-Request-Id", "r-1").Want(http.StatusCreated)
	w.Clock.Advance(time.Second)
	w.Do("POST", path+"/admins/invites", w.tenant.Key, `{"email":"secret.value@example.com"}`).Want(http.StatusAccepted)
	w.command(domain.AuditEntry{
		Operation: "keys revoke", Partner: w.tenant.ID, Object: domain.AuditObject{Kind: "key", ID: "pk_x"}, Fields: []string{"revoked_at"},
	})
	w.command(domain.AuditEntry{Operation: "partners rename", Partner: w.tenant.ID, Object: domain.AuditObject{Kind: "partner", ID: "par_1"}})

	got := w.log(w.tenant.Key, "sort=at")
	if len(got) != 4 {
		t.Fatalf("%d entries: %+v", len(got), got)
	}
	created := got[0]
	if created.Operation != "users.create" || created.Actor.Type != domain.KeyActor || *created.ClientID != w.north.ID ||
		created.Object.Type != "user" || *created.Object.ID != r.Field("id") || *created.RequestID != "r-1" ||
		!slices.Equal(created.Fields, []string{"email", "first_name"}) || !created.At.Time.Equal(v2test.Noon) || created.ID.IsZero() {
		t.Errorf("the creation of a user: %+v", created)
	}
	if invited := got[1]; invited.Object.Type != "invite" || invited.Object.ID != nil {
		t.Errorf("an invite: %+v", invited.Object)
	}
	revoked := got[2]
	if revoked.Actor != (api.AuditActor{Type: domain.OperatorActor}) || revoked.Object.Type != "key" || *revoked.Object.ID != "pk_x" ||
		revoked.RequestID != nil || revoked.IPAddress != nil || revoked.ClientID != nil {
		t.Errorf("a command: %+v", revoked)
	}
	if renamed := got[3]; renamed.Object.Type != "partner" || renamed.Object.ID != nil || renamed.Fields == nil {
		t.Errorf("another command: %+v", renamed)
	}
	for _, hidden := range []string{"secret", "root", "/v2/"} {
		if text := string(w.Get("/v2/audit-log", w.tenant.Key).Body); strings.Contains(strings.ToLower(text), hidden) {
			t.Errorf("the log contains %q: %s", hidden, text)
		}
	}
}

// TestAuditLogOfRotatedKeys verifies that the secrets of a key count as one key, and that an entry has the prefix of the
// secret that was used.
func TestAuditLogOfRotatedKeys(t *testing.T) {
	t.Parallel()
	w := newLogWorld(t)
	old := w.AddKey(w.tenant, bothScopes, []domain.ClientID{w.north.ID})
	w.change(old, w.north)
	rotated, err := w.DB.RotateKey(t.Context(), prefixOf(old), db.Rotation{OldFor: time.Hour})
	w.Must(err)
	w.change(rotated.Text, w.north)
	want := []string{"clients.update " + prefixOf(rotated.Text) + " north *", "clients.update " + prefixOf(old) + " north *"}
	for _, query := range []string{"", "key=" + prefixOf(old), "key=" + prefixOf(rotated.Text)} {
		for _, key := range []string{w.tenant.Key, old, rotated.Text} {
			if got := w.shown(key, query); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
	}
}

// TestAuditLogEndsAtHorizon verifies that, with since, the log ends where changes may still be in progress, so that the
// greatest time that a caller has seen is a safe since, and that it shows every change without since.
func TestAuditLogEndsAtHorizon(t *testing.T) {
	t.Parallel()
	w := newLogWorld(t)
	w.change(w.tenant.Key, w.north)
	since := "since=" + w.Clock.Now().Format(time.RFC3339)
	slow := domain.AuditEntry{Partner: w.tenant.ID, Prefix: domain.CommandActor, Operation: "slow", Address: netip.Addr{}}
	var first []string
	w.Must(w.DB.Stamped(t.Context(), func(ctx context.Context, _ time.Time) error {
		w.Clock.Advance(time.Second)
		w.command(domain.AuditEntry{Partner: w.tenant.ID, Operation: "later"})
		for _, sort := range []string{"&sort=at", "&sort=-at"} {
			if first = w.shown(w.tenant.Key, since+sort); len(first) != 1 || strings.HasPrefix(first[0], "later") {
				t.Errorf("while a change is in progress, the log is %q", first)
			}
		}
		if got := w.shown(w.tenant.Key, ""); len(got) != 2 || got[0] != "later" {
			t.Errorf("without since, the log is %q", got)
		}
		return w.DB.Audit(ctx, slow)
	}))
	if got := w.shown(w.tenant.Key, since+"&sort=at"); len(got) != 3 || got[0] != first[0] || got[2] != "later" {
		t.Errorf("afterward, the log is %q", got)
	}
	checkInvalid(t, w.Get("/v2/audit-log?"+since+"&until=2020-01-01T00:00:00Z", w.tenant.Key), "since", "must not be after until")
}
