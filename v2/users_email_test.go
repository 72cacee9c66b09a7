package v2_test

import (
	"net/url"
	"slices"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// spellings are pairs of addresses with the same key.
var spellings = [][2]string{
	{"straße@example.com", "STRASSE@example.com"}, {"νίκος@example.com", "ΝΊΚΟΣ@example.com"}, {"σισυφος@example.com", "ΣΙΣΥΦΟσ@example.com"},
	{"ſmith@example.com", "Smith@example.com"}, {"5µm@example.com", "5μM@example.com"}, {"ŉ@example.com", "ʼN@example.com"},
	{"ﬁx@example.com", "FIX@example.com"}, {"oﬃce@example.com", "Office@example.com"}, {"և@example.com", "ԵՒ@example.com"},
	{"ᾳ@example.com", "ΑΙ@example.com"}, {"e\u0301a@example.com", "ÉA@example.com"}, {"zo\u212a@example.com", "zok@example.com"},
	{"x@bücher.example", "X@XN--BCHER-KVA.example"}, {"y@Straße.example", "y@xn--strae-oqa.example"},
}

// TestEmailsAreComparedByKey verifies decisions 2.8 for users and invites: conflicts, and searches by both spellings.
func TestEmailsAreComparedByKey(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	made := h.AddClient(tenant, "Client").ID
	client := made.String()
	for i, pair := range spellings {
		first, second := pair[i%2], pair[1-i%2]
		body := func(email string) map[string]string { return map[string]string{"email": email, "first_name": "A"} }
		id := h.Do("POST", "/v2/clients/"+client+"/users", tenant.Key, body(first)).Want(201).Field("id")
		checkError(t, h.Do("POST", "/v2/clients/"+client+"/users", tenant.Key, body(second)), domain.Conflict)
		for _, address := range pair {
			for _, path := range []string{"/v2/users?email=", "/v2/clients/" + client + "/users?q="} {
				found := h.All(path+url.QueryEscape(address), tenant.Key)
				if len(found) != 1 || found[0]["id"] != id {
					t.Errorf("%s%s finds %v, not %v", path, address, found, id)
				}
			}
		}
	}
	for _, other := range []string{"y@strasse.example", "izmir@example.com", "İzmir@example.com"} {
		h.Do("POST", "/v2/clients/"+client+"/users", tenant.Key, map[string]string{"email": other, "first_name": "A"}).Want(201)
	}
	for q, want := range map[string]int{"bücher": 1, "xn--bch": 1, "straße.example": 1, "strasse.example": 1, "strasse": 2, "izmir": 1, "%": 0, "νίκος@": 1} {
		if found := h.All("/v2/clients/"+client+"/users?q="+url.QueryEscape(q), tenant.Key); len(found) != want {
			t.Errorf("%q finds %d users, not %d", q, len(found), want)
		}
	}

	h.Clock.Advance(1)
	invites := "/v2/clients/" + client + "/admins/invites"
	for _, pair := range spellings[:3] {
		h.Do("POST", invites, tenant.Key, map[string]string{"email": pair[0], "role": "viewer"}).Want(202)
		checkError(t, h.Do("POST", invites, tenant.Key, map[string]string{"email": pair[1], "role": "viewer"}), domain.Conflict)
	}
	h.Exec(`INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at)
		SELECT gen_random_uuid(), partner_id, id, 'ﬁx@example.com', 'F', 'admin', now() FROM clients WHERE id = $1`, made)
	if _, err := h.DB.SettleEmails(t.Context()); err != nil {
		t.Fatal(err)
	}
	checkError(t, h.Do("POST", invites, tenant.Key, map[string]string{"email": "FIX@example.com", "role": "viewer"}), domain.Conflict)
}

// TestUsersByEmailKey verifies that the list by email is in the order of the keys.
func TestUsersByEmailKey(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	client := h.AddClient(tenant, "Client").ID
	for _, email := range []string{"straßf@x.example", "strasse@x.example", "strassg@x.example", "a@zz.example", "a@ärzte.example", "ﬁb@x.example", "fia@x.example"} {
		h.AddUser(tenant, client, email)
	}
	want := []string{"a@zz.example", "a@xn--rzte-koa.example", "fia@x.example", "ﬁb@x.example", "strasse@x.example", "straßf@x.example", "strassg@x.example"}
	for _, sort := range []string{"email", "-email"} {
		var got []string
		for _, u := range h.All("/v2/clients/"+client.String()+"/users?limit=2&sort="+sort, tenant.Key) {
			got = append(got, u["email"].(string))
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %s: %q, not %q", sort, got, want)
		}
		slices.Reverse(want)
	}
}

// TestSharedEmailKeys verifies that two users of a client whose addresses have the same key, stored by 1.0, stay and are
// found, and that a third one is a conflict, whichever spelling it has.
func TestSharedEmailKeys(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	first, second := h.AddClient(tenant, "First"), h.AddClient(tenant, "Second")
	older := h.AddUser(tenant, second.ID, "straße@example.com")
	h.AddUser(tenant, first.ID, "strasse@example.com")
	h.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT client_id, gen_random_uuid(), 'strasse@example.com', 'B', '', 'b', 'active', 'standard', 'en', 'api', 1, now() + interval '1 day', now()
		FROM users WHERE id = $1`, older.ID)
	create := func() {
		t.Helper()
		for _, spelling := range []string{"Straße@example.com", "strasse@example.com", "ſtraſſe@example.com", "STRAẞE@example.com"} {
			checkError(t, h.Do("POST", "/v2/clients/"+second.ID.String()+"/users", tenant.Key, map[string]string{"email": spelling, "first_name": "C"}), domain.Conflict)
		}
	}
	create() // while the row of 1.0 has no key yet
	if n, err := h.DB.SettleEmails(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d addresses are settled: %v", n, err)
	}
	create()
	found := func(path string) (emails []string) {
		for _, u := range h.All(path, tenant.Key) {
			emails = append(emails, u["email"].(string))
		}
		return emails
	}
	want := []string{"strasse@example.com", "straße@example.com", "strasse@example.com"} // of the first client, and both of the second
	for _, path := range []string{"/v2/users?limit=1&email=ſtraſſe@example.com", "/v2/users?limit=2&email=strasse@example.com"} {
		got := found(path)
		slices.Sort(got)
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s finds %q, not %q", path, got, want)
		}
	}
	if got := found("/v2/clients/" + second.ID.String() + "/users?limit=1&sort=email"); len(got) != 2 {
		t.Errorf("the list has %q", got)
	}

	h.Exec("UPDATE users SET email = 'gone@example.com' WHERE id = $1", older.ID) // as 1.0 does
	create()                                                                      // the other user still has the key
}

// TestCursorOfUsersByEmail verifies that a cursor of 1.0, which ends with the client, continues after that client.
func TestCursorOfUsersByEmail(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	var ids []domain.UserID
	for _, name := range []string{"First", "Second", "Third"} {
		ids = append(ids, h.AddUser(tenant, h.AddClient(tenant, name).ID, "ada@example.com").ID)
	}
	page, err := h.DB.UsersByEmail(tenant.Ctx, "ada@example.com", domain.Window{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	old := domain.Position{Key: page.End.Key, ID: page.End.Owner}
	rest, err := h.DB.UsersByEmail(tenant.Ctx, "ada@example.com", domain.Window{Limit: 10, After: &old})
	if err != nil || len(rest.Rows) != 2 || rest.Rows[0].ID != ids[1] || rest.Rows[1].ID != ids[2] {
		t.Errorf("after the first client: %+v, %v", rest.Rows, err)
	}
}

// TestConcurrentSpellings verifies that of two concurrent users with the same key one is created, and the other is a
// conflict.
func TestConcurrentSpellings(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	client := h.AddClient(tenant, "Client").ID
	for _, pair := range spellings {
		results := make(chan error, len(pair))
		for _, email := range pair {
			go func() {
				in := &api.CreateUserInput{}
				in.Path.ClientID, in.Body.Email, in.Body.FirstName = client, email, "A"
				_, err := op.Call(tenant.Ctx, &h.API.Set, api.CreateUser, in)
				results <- err
			}()
		}
		failed := 0
		for range pair {
			if err := <-results; err != nil {
				failed++
				if !domain.IsCode(err, domain.Conflict) {
					t.Errorf("%q: %v", pair, err)
				}
			}
		}
		if failed != 1 {
			t.Errorf("%q: %d of 2 fail", pair, failed)
		}
	}
	if n := h.Number("SELECT count(DISTINCT " + db.EmailKey + ") FROM users AS u"); n != len(spellings) {
		t.Errorf("%d keys", n)
	}
}
