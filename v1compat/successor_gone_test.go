package v1compat

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v1compat/retire"
)

// gone is the successor that a request is led to which the phase of its key refuses.
func (s *scene) gone(method, path, key, body string) string {
	s.T.Helper()
	return successorOf(s.T, s.Do(method, path, key, body).Want(http.StatusGone))
}

// TestSuccessorsWhenGone: a request that is refused leads to what its answer would
// have led to.
func TestSuccessorsWhenGone(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	off, writer := s.AddKey(s.Partner, []domain.Scope{domain.Read, domain.Write}, nil), s.AddKey(s.Partner, []domain.Scope{domain.Write}, nil)
	s.set(s.of(off), retire.Off)
	s.set(s.of(writer), retire.Off)
	for _, r := range s.facade.routes {
		if r.Additive {
			continue
		}
		good := s.good(r)
		got := s.gone(r.Method, good.path, off, good.body)
		if r.operation.Meta().Scope == domain.Write {
			if alike := s.gone(r.Method, good.path, writer, good.body); alike != got {
				t.Errorf("%s: a key that only writes is led to %q, not to %q", r.ID, alike, got)
			}
		}
		want := successorOf(t, s.Do(r.Method, good.path, s.Key, good.body).Want(r.Status))
		if r.Reordered { // the answer's page is the whole list
			want = without(want, "limit")
		}
		if r.ID == "sentemails" { // whose days are counted from the request
			got, want = without(got, "since"), without(want, "since")
		}
		if got != want || want == "" {
			t.Errorf("%s: a refusal leads to %q, an answer to %q", r.ID, got, want)
		}
	}
}

// without is a target without a parameter.
func without(target, name string) string {
	path, query, _ := strings.Cut(target, "?")
	parameters := slices.DeleteFunc(strings.Split(query, "&"), func(p string) bool { return strings.HasPrefix(p, name+"=") })
	return strings.TrimSuffix(path+"?"+strings.Join(parameters, "&"), "?")
}

// TestGoneLeaksNothing: what the key does not reach is not named, nor distinguished from what
// does not exist; and nothing is in the way of the refusal.
func TestGoneLeaksNothing(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	stranger := s.service.AddPartner("Stranger")
	s.set(s.of(stranger.Key), retire.Off)
	own := s.AddClient(stranger, "Own").ID
	number := s.number(own)
	for name, c := range map[string]struct{ method, path, body, want string }{
		"a client":              {"GET", "/v1/clients/N/users?limit=7", "", ""},
		"its collection":        {"GET", "/v1/clients/" + number + "/collections/" + s.collection + "/members", "", ""},
		"among own ids":         {"GET", "/v1/clients?ids=" + number + ",N", "", "/v2/clients?ids=" + own.String() + "&sort=created_at&limit=20"},
		"other's ids":           {"GET", "/v1/clients?ids=N", "", "/v2/clients?ids=&sort=created_at&limit=20"},
		"ids that are no ids":   {"GET", "/v1/clients?ids=" + number + ",x", "", ""},
		"a later page of ids":   {"GET", "/v1/clients?offset=3&ids=" + number, "", "/v2/clients?ids=" + own.String() + "&sort=created_at"},
		"bracketed no ids":      {"GET", "/v1/clients?ids[]=x", "", ""},
		"own bracketed ids":     {"GET", "/v1/clients?limit=7&ids[0]=" + number, "", "/v2/clients?ids=" + own.String() + "&sort=created_at&limit=7"},
		"more than fit":         {"GET", "/v1/clients?ids=" + number + strings.Repeat(","+number, 40), "", ""},
		"own ids":               {"GET", "/v1/clients?limit=7&ids=" + number, "", "/v2/clients?ids=" + own.String() + "&sort=created_at&limit=7"},
		"no ids":                {"GET", "/v1/clients?offset=3&limit=7", "", "/v2/clients?sort=created_at"},
		"what cannot be read":   {"GET", "/v1/clients?limit=x", "", "/v2/clients"},
		"a number that is none": {"GET", "/v1/clients/x/users", "", ""},
		"a write's body":        {"POST", "/v1/clients", "{", "/v2/clients"},
		"of an own client":      {"POST", "/v1/clients/" + number + "/users", "{", "/v2/clients/" + own.String() + "/users"},
		// the same id in another spelling
		"a user":              {"GET", "/v1/users/" + s.user + "/training", "", "/v2/users/" + s.userID.String() + "/training?limit=20"},
		"a user's results":    {"GET", "/v1/users/" + s.user + "/phishing", "", ""},
		"a send":              {"POST", "/v1/sendphishing", `{"user_id":"` + s.user + `","phishing_template":` + s.template + `}`, ""},
		"no send":             {"POST", "/v1/sendphishing", `{`, ""},
		"mails":               {"POST", "/v1/sentemails", `{"user_infima_id":"` + s.user + `"}`, ""},
		"mails to an address": {"POST", "/v1/sentemails", `{"email_address":"first@example.com"}`, ""},
	} {
		for _, stands := range []string{s.clientNo, unnumbered} {
			path := strings.ReplaceAll(c.path, "N", stands)
			if got := s.gone(c.method, path, stranger.Key, c.body); parametersOf(got) != parametersOf(c.want) {
				t.Errorf("%s: %s leads to %q, not to %q", name, path, got, c.want)
			}
		}
	}
}

// TestGoneWithoutDatabase: a refusal does not wait for the link.
func TestGoneWithoutDatabase(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	s.set(s.of(s.Key), retire.Off)
	s.Exec("ALTER TABLE clients RENAME TO clients_gone")
	if got := s.gone("GET", "/v1/clients/"+s.clientNo+"/users", s.Key, ""); got != "" {
		t.Errorf("leads to %s", got)
	}
}
