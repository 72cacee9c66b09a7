package v2_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// outsiders are the texts of each path parameter, by what they are, that are
// not within the reach of the key.
type outsiders map[string]ids

// tenants are a partner with a client outside of a subset key, one within it,
// and one archived, and another partner.
func tenants(t *testing.T, w *world) (subset string, out outsiders) {
	subset = w.AddKey(w.tenant, bothScopes, []domain.ClientID{w.client.ID})
	listed := w.AddClient(w.tenant, "Archived, and listed for the key")
	archivedUser := w.AddUser(w.tenant, listed.ID, "first@example.com")
	w.Exec("INSERT INTO api_key_clients (key_id, client_id) SELECT id, $1 FROM api_keys WHERE NOT all_clients", listed.ID)
	w.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", listed.ID)
	w.CountClients()
	beside := w.AddClient(w.tenant, "Beside")
	besideUser := w.AddUser(w.tenant, beside.ID, "first@example.com")
	other := w.AddPartner("Another partner")
	theirs := w.AddClient(other, "Client")
	theirUser := w.AddUser(other, theirs.ID, "first@example.com")
	archived := w.pair(listed, archivedUser)
	archived["webhook_id"], archived["delivery_id"] = strangers()["webhook_id"], strangers()["delivery_id"] // which are the partner's
	return subset, outsiders{
		"outside the subset": w.pair(beside, besideUser),
		"another partner's":  w.pair(theirs, theirUser),
		"archived":           archived,
		"unknown":            strangers(),
	}.withMalformed(w)
}

// pair is the ids of a client and its user, with parts of its own.
func (w *world) pair(c api.Client, u api.User) ids {
	return furnish(w.Harness, c.ID, u.ID, 1).with(c.ID, u.ID)
}

// withMalformed adds texts that are no ids, or not of the kind: made from the
// ids that are within reach.
func (out outsiders) withMalformed(w *world) outsiders {
	within := w.ids()
	each := func(name string, of func(id string) string) {
		out[name] = ids{}
		for parameter, id := range within {
			if text := of(id); parameter != "breach_name" && parameter != "field" || utf8.ValidString(text) && !strings.Contains(text, "\x00") {
				out[name][parameter] = url.PathEscape(text)
			} else {
				out[name][parameter] = id // a text that no breach or field can have is a bad request
			}
		}
	}
	suffix := func(id string) string { return id[strings.IndexByte(id, '_')+1:] }
	each("with another type's prefix", func(id string) string { return "adm_" + suffix(id) })
	each("without its prefix", suffix)
	each("in upper case", strings.ToUpper)
	each("with upper-case digits", func(id string) string { return id[:4] + strings.ToUpper(id[4:]) })
	each("cut", func(id string) string { return id[:len(id)-1] })
	each("longer", func(id string) string { return id + "0" })
	each("overflowing", func(id string) string { return id[:4] + "8" + id[5:] })
	each("a UUID", func(id string) string { return "019b7740-0000-7000-8000-000000000001" })
	each("the zero UUID", func(id string) string { return id[:4] + strings.Repeat("0", 26) })
	each("a number", func(string) string { return "1" })
	each("blank", func(string) string { return " " })
	each("with a slash", func(id string) string { return id + "/" })
	each("with a NUL", func(id string) string { return id + "\x00" })
	each("not UTF-8", func(id string) string { return id[:len(id)-1] + "\xff" })
	each("SQL", func(id string) string { return id + "' OR '1'='1" })
	each("very long", func(id string) string { return strings.Repeat(id, 100) })
	crossed := maps.Clone(within)
	crossed["client_id"], crossed["user_id"] = within["user_id"], within["client_id"]
	crossed["webhook_id"], crossed["delivery_id"] = within["delivery_id"], within["webhook_id"]
	out["the other kind's id"] = crossed
	return out
}

// TestCrossTenant sends every operation that has ids in its path those of
// objects that are out of reach: the answer is one 404, the same to the byte
// whatever the reason, and nothing changes.
func TestCrossTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	subset, out := tenants(t, w)
	before := w.contents()
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		if len(o.Input().Path) == 0 {
			return
		}
		want := anonymous(checkError(t, w.send(o, subset, strangers()), domain.NotFound))
		for name, at := range out {
			t.Run(name, func(t *testing.T) {
				w := w.in(t)
				for _, headers := range [][]string{nil, {"Idempotency-Key", "k"}} {
					r := checkError(t, w.send(o, subset, at, headers...), domain.NotFound)
					if got := anonymous(r); got != want {
						t.Errorf("answers %s\nnot %s", got, want)
					}
				}
				if name == "outside the subset" {
					return // the tenant's other key reaches it
				}
				if got := anonymous(checkError(t, w.send(o, w.tenant.Key, at), domain.NotFound)); got != want {
					t.Errorf("to the key of all clients answers %s\nnot %s", got, want)
				}
			})
		}
	})
	if after := w.contents(); after != before {
		t.Errorf("requests out of reach changed something:\n%s\nwas\n%s", after, before)
	}
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		r := w.send(o, subset, w.ids())
		if o.Meta().ID == "clients.create" { // needs all clients
			checkError(t, r, domain.Forbidden)
			return
		}
		r.Want(o.Meta().Status)
	})
}

// TestPartsOfOthers: a collection, a policy, a framework assignment or an exposure of another client is
// as one that is not there, though the client or the user of the path is within
// reach.
func TestPartsOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	_, out := tenants(t, w)
	before := w.contents()
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		for _, part := range []string{"collection_id", "policy_id", "breach_name", "assignment_id", "report_id", "delivery_id", "result_id"} {
			if !strings.Contains(o.Meta().Path, ":"+part) {
				continue
			}
			at := w.ids()
			at[part] = strangers()[part]
			want := anonymous(checkError(t, w.send(o, w.tenant.Key, at), domain.NotFound))
			for name, theirs := range out {
				if theirs[part] == breach || name == "the other kind's id" {
					continue // breaches are everyone's, and only its clients and users are crossed
				}
				at[part] = theirs[part]
				if got := anonymous(checkError(t, w.send(o, w.tenant.Key, at), domain.NotFound)); got != want {
					t.Errorf("%s: answers %s, not %s", name, got, want)
				}
			}
		}
	})
	if w.contents() != before {
		t.Error("requests for others' parts changed something")
	}
}

// names lists a page's members called name.
func names(r v2test.Response) []string { return column(r, "name") }

// column lists one member of a page's items.
func column(r v2test.Response, member string) (texts []string) {
	for _, item := range r.JSON()["data"].([]any) {
		texts = append(texts, item.(map[string]any)[member].(string))
	}
	return texts
}

// TestOrderOfChecks holds decisions 2.4 for every operation: each request has
// every fault from some point on, and the first decides.
func TestOrderOfChecks(t *testing.T) {
	t.Parallel()
	limits := v2test.Unlimited
	limits.PerKey = 1
	w := newWorld(t, v2test.Options{Limits: limits})
	free := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	_, out := tenants(t, free)
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		path, f := pathOf(t, o, strangers(), "limit=0", "sort=nope"), free.in(t)
		bad := func(w *world, key string, headers ...string) v2test.Response {
			return w.Do(o.Meta().Method, path, key, badBody(o), headers...)
		}
		checkError(t, bad(w, ""), domain.Unauthorized)
		checkError(t, w.Do("DELETE", "/v2/unknown", "", nil), domain.Unauthorized)
		spent := w.keyWithout(o.Meta().Scope)
		checkScope(t, o, bad(w, spent))
		checkError(t, bad(w, spent), domain.RateLimited)
		checkError(t, w.Do("DELETE", "/v2/unknown", spent, nil), domain.NotFound)
		checkScope(t, o, bad(f, f.keyWithout(o.Meta().Scope)))
		if o.Input().Body == nil && !slices.ContainsFunc(o.Input().Query, func(p op.Param) bool { return p.Name == "limit" }) {
			return // no request to it is bad
		}
		for name, at := range out {
			r := f.Do(o.Meta().Method, pathOf(t, o, at, "limit=0"), f.tenant.Key, badBody(o))
			if r.Status != http.StatusBadRequest {
				t.Errorf("%s: a bad request answers %d: %s", name, r.Status, r.Body)
			}
			// a fault of the rules, not of the JSON
			if o.Meta().Method == "POST" {
				r = f.Do("POST", pathOf(t, o, at), f.tenant.Key, blanked(f, o))
				if r.Status != http.StatusBadRequest {
					t.Errorf("%s: a bad member answers %d: %s", name, r.Status, r.Body)
				}
			}
		}
		if o.Meta().Method == "POST" {
			f.send(o, f.tenant.Key, f.ids(), "Idempotency-Key", o.Meta().ID).Want(o.Meta().Status)
			r := f.Do("POST", pathOf(t, o, f.ids()), f.tenant.Key, blanked(f, o), "Idempotency-Key", o.Meta().ID)
			checkError(t, r, domain.InvalidRequest) // before the conflict
			r = f.Do("POST", pathOf(t, o, f.ids()), f.tenant.Key, badBody(o), "Idempotency-Key", o.Meta().ID)
			checkError(t, r, domain.InvalidRequest)
		}
	})
}

func badBody(o op.Operation) any {
	if o.Input().Body == nil {
		return nil
	}
	return `{"unknown":1}`
}

// blanked is a body whose required members are blank, and whose lists are empty.
func blanked(w *world, o op.Operation) map[string]any {
	body := maps.Clone(w.body(o))
	for _, m := range members(o) {
		switch {
		case m.has("filled"):
			body[m.name] = " "
		case m.has("required"):
			body[m.name] = nil
		case m.has("min=1"):
			body[m.name] = []any{}
		}
	}
	return body
}

// TestUnknownRoutes answers all that is below the prefix in v2's way.
func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	for _, path := range []string{"/v2", "/v2/", "/v2/clients/", "/v2/Clients", "/v2//clients", "/v2/clients//admins", "/v2/clients/x/y/z", "/v2/%2e%2e/v2/clients", "/v2/openapi.yaml/"} {
		for _, method := range []string{"GET", "POST", "DELETE", "BREW"} {
			checkError(t, w.Do(method, path, w.tenant.Key, nil), domain.NotFound)
			checkError(t, w.Do(method, path, "", nil), domain.Unauthorized)
		}
	}
	if head := w.Do("HEAD", "/v2/clients", w.tenant.Key, nil); head.Status != 200 || len(head.Body) != 0 {
		t.Errorf("HEAD answers %d %s", head.Status, head.Body)
	}
	sends := "/v2/clients/" + w.client.ID.String() + "/phishing/sends"
	if head := w.Do("HEAD", sends, w.tenant.Key, nil); head.Status != 405 || len(head.Body) != 0 {
		t.Errorf("HEAD of what cannot be read answers %d %s", head.Status, head.Body)
	}
	if r := w.Do("GET", "/elsewhere", "", nil); r.Status != 404 || r.Header.Get("X-Ratelimit-Limit") != "" {
		t.Errorf("outside of every version: %d %v", r.Status, r.Header)
	}
	if r := w.Do("GET", "/v2x/clients", "", nil); r.Status != 404 || r.Header.Get("X-Ratelimit-Limit") != "" {
		t.Errorf("beside the prefix: %d %v", r.Status, r.Header)
	}
}
