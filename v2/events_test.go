package v2_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// plainEvent is the body of an event that plain SQL adds at a place n.
const plainEvent = `format('{"id":"evt_01h455vb4pex5vsknk084sn02q","type":"policy.acknowledged",` +
	`"created_at":"2026-06-15T12:00:00.000000Z","client_id":"cli_01h455vb4pex5vsknk084sn02q","data":{"policy_id":"pol_1",` +
	`"user_id":"usr_1","version":%s,"acknowledged_at":"2026-06-15T12:00:00.000000Z"}}', n)`

// follower follows the events of a key, with filters.
type follower struct {
	*v2test.Harness
	key, filters, cursor string
}

// page reads the next page, and the texts of its events.
func (f *follower) page(limit int) (items []string, more bool) {
	f.T.Helper()
	query := fmt.Sprintf("?limit=%d&%s", limit, f.filters)
	if f.cursor != "" {
		query += "&cursor=" + url.QueryEscape(f.cursor)
	}
	r := f.Get("/v2/events"+query, f.key).Want(http.StatusOK)
	items, f.cursor = rawItems(r), r.Field("page.next_cursor").(string)
	return items, r.Field("page.has_more").(bool)
}

// rest reads all that is there.
func (f *follower) rest(limit int) (all []string) {
	f.T.Helper()
	for {
		items, more := f.page(limit)
		if more && len(items) != limit {
			f.T.Errorf("a page of %d, not %d, says that more is there", len(items), limit)
		}
		if all = append(all, items...); !more {
			return all
		}
	}
}

// stored are the bodies of the events of clients and types, in their order; none of
// either stand for all.
func (w *world) stored(clients []domain.ClientID, types ...domain.EventType) []string {
	w.T.Helper()
	ids, kinds := []string{}, []string{}
	for _, c := range clients {
		ids = append(ids, c.UUID())
	}
	for _, t := range types {
		kinds = append(kinds, string(t))
	}
	bodies := w.Text(`SELECT coalesce(string_agg(body, E'\n' ORDER BY position), '') FROM published_events
		WHERE (client_id = ANY($1::text[]::uuid[]) OR $1 = '{}') AND (type = ANY($2::text[]) OR $2 = '{}')`, ids, kinds)
	return strings.FieldsFunc(bodies, func(r rune) bool { return r == '\n' })
}

// TestFollowEvents: whatever the key and the filters, and however large the pages, the
// events come in their order, each once and to the byte, and go on after the end.
func TestFollowEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	dice := rand.New(rand.NewPCG(9, 1))
	var clients []domain.ClientID
	for i := range 5 {
		clients = append(clients, w.AddClient(w.tenant, fmt.Sprint("Client ", i)).ID)
	}
	theirs := w.AddPartner("Other")
	foreign := w.AddClient(theirs, "Theirs").ID
	archived := w.AddClient(w.tenant, "Archived").ID
	archivedKey := w.AddKey(w.tenant, []domain.Scope{domain.Read}, []domain.ClientID{archived})
	subset := clients[1:4]
	key := w.AddKey(w.tenant, []domain.Scope{domain.Read}, subset)
	reached := append([]domain.ClientID{w.client.ID}, clients...)
	filter := func(query string) *follower { return &follower{w.Harness, w.tenant.Key, query, ""} }
	created, users := string(domain.ClientCreated), "user.created,"+string(domain.UserUpdated)
	userTypes := []domain.EventType{domain.UserCreated, domain.UserUpdated}
	followers := []struct {
		*follower
		clients []domain.ClientID
		types   []domain.EventType
	}{
		{filter(""), reached, nil},
		{filter("types=" + created), reached, []domain.EventType{domain.ClientCreated}},
		{filter("types=" + users), reached, userTypes},
		{filter("types=user.updated&types=user.created,%20user.updated"), reached, userTypes},
		{filter("types=report.ready"), nil, []domain.EventType{domain.ReportMade}},
		{filter("client_id=" + clients[1].String()), clients[1:2], nil},
		{filter("client_id=" + clients[1].String() + "&types=" + users), clients[1:2], userTypes},
		{&follower{w.Harness, key, "", ""}, subset, nil},
		{&follower{w.Harness, key, "types=" + users, ""}, subset, userTypes},
		{&follower{w.Harness, key, "client_id=" + clients[2].String(), ""}, clients[2:3], nil},
	}
	seen := make([][]string, len(followers))
	for round := range 4 {
		for range 30 {
			client, tenant := clients[dice.IntN(5)], w.tenant
			switch dice.IntN(8) {
			case 0:
				client, tenant = foreign, theirs
			case 1:
				if round == 0 {
					client = archived
				}
			}
			w.AddUser(tenant, client, v2test.Email(int(w.sampled.Add(1))))
			if dice.IntN(4) == 0 {
				w.Publish()
			}
		}
		if round == 0 {
			w.Publish()
			w.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", archived)
		}
		w.Publish()
		for i, f := range followers {
			seen[i] = append(seen[i], f.rest(1+dice.IntN(20))...)
			want := w.stored(f.clients, f.types...)
			if !slices.Equal(seen[i], want) {
				t.Fatalf("round %d, %q: followed %d events, not the %d there are", round, f.filters, len(seen[i]), len(want))
			}
			if f.clients != nil && len(want) == 0 {
				t.Errorf("%q has no events", f.filters)
			}
		}
	}
	for _, f := range []*follower{
		{w.Harness, key, "client_id=" + clients[0].String(), ""}, // out of the subset
		{w.Harness, theirs.Key, "client_id=" + clients[0].String(), ""},
		{w.Harness, archivedKey, "", ""},
		filter("client_id=" + archived.String()), filter("client_id=none"),
	} {
		if got := f.rest(100); len(got) > 0 {
			t.Errorf("%q shows %d events", f.filters, len(got))
		}
	}
	if got := (&follower{w.Harness, theirs.Key, "", ""}).rest(7); !slices.Equal(got, w.stored([]domain.ClientID{foreign})) {
		t.Errorf("the other partner sees %d events", len(got))
	}
}

// TestLatestEvents: cursor=latest begins at the end, with any filters.
func TestLatestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	empty := &follower{w.Harness, w.AddPartner("Without events").Key, "", "latest"}
	if items, more := empty.page(10); len(items) > 0 || more || empty.cursor == "" {
		t.Errorf("without events: %v %v %q", items, more, empty.cursor)
	}
	w.Publish()
	for _, filters := range []string{"", "types=user.created", "client_id=" + w.client.ID.String()} {
		f := &follower{w.Harness, w.tenant.Key, filters, "latest"}
		if items, more := f.page(10); len(items) > 0 || more {
			t.Errorf("%q: begins with %d events", filters, len(items))
		}
		if items, more := f.page(10); len(items) > 0 || more {
			t.Errorf("%q: goes on with %d events", filters, len(items))
		}
		w.AddUser(w.tenant, w.client.ID, v2test.Email(int(w.sampled.Add(1))))
		if items, _ := f.page(10); len(items) > 0 {
			t.Errorf("%q: shows %d events that are not published", filters, len(items))
		}
		w.Publish()
		if items, more := f.page(10); len(items) != 1 || more {
			t.Errorf("%q: shows %d events, not the new one", filters, len(items))
		}
	}
}

// TestEventsKept: events are kept for 30 days, and a cursor into those that are gone
// goes on with what is there. What waits to be published is never dropped.
func TestEventsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	w.Publish()
	f := &follower{w.Harness, w.tenant.Key, "", ""}
	f.page(1)
	w.Clock.Advance(domain.EventLife + 1)
	waiting := w.AddUser(w.tenant, w.client.ID, "second@example.com")
	w.Clock.Advance(domain.EventLife - 1)
	if _, err := w.DB.DailyRefresh(t.Context(), domain.DateOf(w.Clock.Now()), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if items, more := f.page(10); len(items) > 0 || more {
		t.Errorf("%d old events are kept", len(items))
	}
	w.Publish()
	if items, _ := f.page(10); len(items) != 1 || !strings.Contains(items[0], waiting.ID.String()) {
		t.Errorf("goes on with %v", items)
	}
}

// FuzzEventCursor: a cursor that the feed did not give is refused, or is the one that
// begins at the end; never is one a failure.
func FuzzEventCursor(f *testing.F) {
	w := &world{Harness: v2test.New(f, v2test.Options{Limits: v2test.Unlimited})}
	w.tenant = w.AddPartner("Partner")
	w.AddClient(w.tenant, "Client")
	w.Publish()
	follow := &follower{w.Harness, w.tenant.Key, "", ""}
	follow.page(1)
	given := follow.cursor
	for _, seed := range []string{given, "latest", "", "0", "Latest", given + "=", given[:20], "null", `{"k":"1"}`, strings.Repeat("A", 5000)} {
		f.Add(seed)
	}
	ctx := w.As(w.tenant.Key)
	f.Fuzz(func(t *testing.T, cursor string) {
		in := api.ListEvents.New().(*api.ListEventsInput)
		in.Query.Cursor = cursor
		page, err := op.Call(ctx, &w.API.Set, api.ListEvents, in)
		if cursor == given || cursor == "latest" || cursor == "" {
			if err != nil || page.Page.NextCursor == "" {
				t.Fatalf("%q is answered %v, %v", cursor, page, err)
			}
			return
		}
		if !domain.IsCode(err, domain.InvalidRequest) {
			t.Fatalf("%q is answered %v, %v", cursor, page, err)
		}
	})
}
