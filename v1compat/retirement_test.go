package v1compat

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/domain"
	"partnerapi/v1compat/retire"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/v2test"
)

// follow makes a change, which must not be refused, and has the service follow it.
func (s *service) follow(err error) {
	s.T.Helper()
	if err == nil {
		err = s.keeper.Refresh(s.T.Context())
	}
	if err != nil {
		s.T.Fatal(err)
	}
}

// of is the scope of one key.
func (s *service) of(key string) retire.Scope {
	return retire.Scope{Key: domain.CallerFrom(s.As(key)).Key}
}

// set sets a phase for good.
func (s *service) set(of retire.Scope, phase retire.Phase) {
	s.T.Helper()
	s.follow(s.retirement.SetPhase(s.T.Context(), of, phase, time.Time{}))
}

// announcement is one that may be made at noon.
var announcement = retire.Announcement{Announced: v2test.Noon, Sunset: v2test.Noon.AddDate(1, 0, 1)}

// announces wants a response to say that v1 ends, and the guide's anchor; or neither,
// where the anchor is "-".
func announces(t *testing.T, where string, r v2test.Response, anchor string) {
	t.Helper()
	var links []string
	for _, link := range r.Header.Values("Link") {
		if strings.Contains(link, "deprecation") {
			links = append(links, link)
		}
	}
	got := fmt.Sprint(r.Header.Values("Deprecation"), r.Header.Values("Sunset"), links)
	want := fmt.Sprintf(`[@%d] [Wed, 16 Jun 2027 12:00:00 GMT] [</docs/migrating%s>; rel="deprecation"; type="text/html"]`,
		v2test.Noon.Unix(), anchor)
	if anchor == "-" {
		want = "[] [] []"
	}
	if got != want {
		t.Errorf("%s: the headers are %s, not %s", where, got, want)
	}
}

// anchorOf is the page and the fragment that lead to a route.
func anchorOf(r *route) string { return strings.TrimPrefix(r.Guide, guide) }

// TestAnnouncement: once the end is announced every response of v1 says so, whatever
// it is; before and after, no response says anything, and those of v2 never do
// (decisions 11.1).
func TestAnnouncement(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	each := func(announced bool) {
		t.Helper()
		want := func(where string, r v2test.Response, anchor string) {
			t.Helper()
			if !announced {
				anchor = "-"
			}
			announces(t, where, r, anchor)
		}
		for _, r := range s.facade.routes {
			good := s.good(r)
			got := s.Do(r.Method, good.path, s.Key, good.body).Want(r.Status)
			if r.Method == http.MethodGet {
				want("HEAD "+r.ID, s.Do(http.MethodHead, good.path, s.Key, nil).Want(r.Status), anchorOf(r))
			}
			want(r.ID, got, anchorOf(r))
			want(r.ID+" without a key", s.Do(r.Method, good.path, "", good.body).Want(http.StatusUnauthorized), anchorOf(r))
			if strings.Contains(r.Path, ":client_id") {
				path := strings.Replace(good.path, "/clients/"+s.clientNo, "/clients/x", 1)
				want(r.ID+" of nobody", s.Do(r.Method, path, s.Key, good.body).Want(http.StatusBadRequest), anchorOf(r))
			}
		}
		want("unknown", s.Get("/v1/unknown", s.Key).Want(http.StatusNotFound), "")
		want("document", s.Get("/v1/openapi.yaml", "").Want(http.StatusOK), "")
		announces(t, "v2", s.Get("/v2/clients", s.Key).Want(http.StatusOK), "-")
	}
	bodies := func() map[string]string {
		t.Helper()
		found := map[string]string{"document": string(s.Get("/v1/openapi.yaml", "").Want(http.StatusOK).Body)}
		for _, r := range s.facade.routes {
			if r.Method == http.MethodGet {
				found[r.ID] = string(s.Get(s.good(r).path, s.Key).Want(r.Status).Body)
			}
		}
		return found
	}

	each(false)
	before := bodies()
	s.follow(s.retirement.Announce(t.Context(), announcement))
	after := bodies()
	each(true)
	for id, body := range before {
		if same := body == after[id]; same == (id == "document") {
			t.Errorf("the body of %s is the same: %v", id, same)
		}
	}
	_, err := s.retirement.Cancel(t.Context())
	s.follow(err)
	each(false)
	if bodies()["document"] != before["document"] {
		t.Error("the document differs when the announcement is taken back")
	}

	for text, deprecated := range map[string]bool{before["document"]: false, after["document"]: true} {
		document, err := openapi3.NewLoader().LoadFromData([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range s.facade.routes {
			o := document.Paths.Find(op.Braced(r.Path)).GetOperation(r.Method)
			if o.Deprecated != (deprecated && !r.Additive) || (o.Responses.Value("410") == nil) != r.Additive {
				t.Errorf("%s is deprecated: %v", r.ID, o.Deprecated)
			}
		}
	}
}

// TestPhases: each route in each phase, for the key and not for others; v2 never
// notices (decisions 11.6).
func TestPhases(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	other := s.service.AddPartner("Other")
	colleague := s.AddKey(s.Partner, []domain.Scope{domain.Read, domain.Write}, nil)
	newer := func() string {
		var text strings.Builder
		for _, path := range []string{"/v2/clients/" + s.sibling.String() + "/users?limit=1", "/v2/clients/x", "/v2/openapi.json"} {
			r := s.Get(path, s.Key)
			for _, varies := range []string{"X-Request-Id", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "Date"} {
				r.Header.Del(varies)
			}
			body := r.Body
			if r.Status != http.StatusOK { // it names the request
				body = nil
			}
			fmt.Fprintln(&text, r.Status, r.Header, string(body))
		}
		return text.String()
	}
	want := newer()

	starts := map[retire.Phase]string{
		retire.Off: "version 1 is switched off for this key", retire.ReadOnly: "version 1 does not accept writes with this key",
	}
	for _, phase := range []retire.Phase{retire.Off, retire.ReadOnly, retire.Brownout, retire.On} {
		s.set(s.of(s.Key), phase)
		for _, r := range s.facade.routes {
			good := s.good(r)
			got := s.Do(r.Method, good.path, s.Key, good.body)
			write := r.operation.Meta().Scope == domain.Write
			if !r.Additive && (phase == retire.Off || phase == retire.ReadOnly && write) {
				s.wantGone(t, r, got, starts[phase])
			} else {
				got.Want(r.Status)
			}
		}
		s.Get("/v1/openapi.yaml", s.Key).Want(http.StatusOK)
		for _, key := range []string{other.Key, colleague} {
			s.Get("/v1/clients", key).Want(http.StatusOK)
			s.Do("POST", "/v1/clients", key, `{"company_name":"`+string(phase)+`"}`).Want(http.StatusCreated)
			s.follow(nil)
			s.Exec("UPDATE clients SET archived_at = now() WHERE name = $1", string(phase)) // which frees the name
			s.CountClients()
		}
		if got := newer(); got != want {
			t.Errorf("in phase %s v2 answers\n%s\nand not\n%s", phase, got, want)
		}
	}
}

// wantGone wants a response to be the 410 of a route, for good and unannounced, whose message has the start.
func (s *scene) wantGone(t *testing.T, r *route, got v2test.Response, start string) {
	t.Helper()
	m := r.Successor.Meta()
	envelope(t, r.ID, got, http.StatusGone, codeGone,
		start+"; call "+m.Method+" /v2"+op.Braced(m.Path)+" instead; see /docs/migrating"+anchorOf(r))
	if retry := got.Header.Get("Retry-After"); retry != "" {
		t.Errorf("%s: Retry-After is %q", r.ID, retry)
	}
	announces(t, r.ID, got, "-")
	links := got.Header.Values("Link")
	leads := func(link string) bool { return strings.HasPrefix(link, "</v2"+m.Path) }
	if !strings.Contains(m.Path, ":") && !slices.ContainsFunc(links, leads) {
		t.Errorf("%s: the links are %v", r.ID, links)
	}
}

// TestOrderOfGone: a 410 is decided after the key, the route and the rate, and
// before the scope, the parameters, the body and reach (decisions 11.6).
func TestOrderOfGone(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{Options: v2test.Options{Limits: ginop.Limits{PerKey: 9, PerAddress: 1000, PerClientFactor: 1}}})
	writer := s.AddKey(s.Partner, []domain.Scope{domain.Write}, nil)
	nothing := s.AddKey(s.Partner, []domain.Scope{domain.Read, domain.Write}, []domain.ClientID{s.client})
	s.set(retire.Scope{}, retire.Off)
	s.follow(s.retirement.Announce(t.Context(), announcement))
	for _, c := range []struct {
		method, path, key, body string
		status                  int
	}{
		{"GET", "/v1/clients", "", "", 401},
		{"GET", "/v1/clients", "pk_wrong", "", 401},
		{"GET", "/v1/unknown", writer, "", 404},
		{"PUT", "/v1/clients", writer, "", 404},
		{"GET", "/v1/clients", writer, "", 410}, // not 403: it lacks the scope
		{"POST", "/v1/clients", nothing, `{"company_name":"New"}`, 410},
		{"GET", "/v1/clients?limit=x", writer, "", 410},
		{"GET", "/v1/clients?a=%zz", writer, "", 410},
		{"GET", "/v1/clients/0/users", writer, "", 410},
		{"GET", "/v1/clients/2147483647/users", writer, "", 410},
		{"POST", "/v1/clients", writer, `{`, 410},
		{"HEAD", "/v1/clients", writer, "", 410},
		{"GET", "/v1/clients", writer, "", 429}, // the tenth
		{"POST", "/v1/clients", writer, `{`, 429},
	} {
		got := s.Do(c.method, c.path, c.key, c.body).Want(c.status)
		where := c.method + " " + c.path
		if got.Header.Get("Sunset") == "" {
			t.Errorf("%s: the headers are %v", where, got.Header)
		}
		if c.status == 410 && c.method != "HEAD" && !strings.Contains(string(got.Body), "; the sunset of version 1 is 2027-06-16T12:00:00Z;") {
			t.Errorf("%s: %s", where, got.Body)
		}
		if (c.status == 429) != (got.Header.Get("Retry-After") != "") {
			t.Errorf("%s: Retry-After is %q", where, got.Header.Get("Retry-After"))
		}
	}
}

// TestBrownout: 410 in the windows, with the seconds that are left, and v1 as ever
// outside of them.
func TestBrownout(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
	spared := s.AddKey(tenant, []domain.Scope{domain.Read}, nil)
	s.set(retire.Scope{Partner: tenant.ID}, retire.Brownout)
	add := func(from, to int, keys ...domain.KeyID) {
		_, err := s.retirement.AddBrownout(t.Context(), retire.Window{
			Start: v2test.Noon.Add(time.Duration(from) * time.Minute), For: time.Duration(to-from) * time.Minute, Count: 1, Keys: keys,
		})
		s.follow(err)
	}
	add(10, 20)
	add(20, 30, s.of(tenant.Key).Key)
	s.set(s.of(spared), retire.On)
	for _, c := range []struct {
		after time.Duration
		retry string // "" is answered
	}{
		{10*time.Minute - time.Microsecond, ""}, {10 * time.Minute, "1200"}, {20*time.Minute - 1500*time.Millisecond, "602"},
		{30*time.Minute - time.Microsecond, "1"}, {30 * time.Minute, ""},
	} {
		s.Clock.Set(v2test.Noon.Add(c.after))
		s.Get("/v1/clients", spared).Want(http.StatusOK)
		got := s.Get("/v1/clients", tenant.Key)
		if c.retry == "" {
			got.Want(http.StatusOK)
			continue
		}
		envelope(t, "in a window", got, http.StatusGone, codeGone, "version 1 is unavailable until 2026-06-15T12:30:00Z, in preparation for its end; "+
			"call GET /v2/clients instead; see /docs/migrating/clients#get-v1clients")
		if retry := got.Header.Get("Retry-After"); retry != c.retry {
			t.Errorf("after %v, Retry-After is %q, not %s", c.after, retry, c.retry)
		}
	}
}
