package v1compat

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/v2test"
)

// documented is v1's table of conditions: its operations, their routes, and when
// each fails with which status.
var documented = []struct {
	operation, route string
	conditions       []string
}{
	{"Create Client", "create-client", []string{"400 company_name missing", "400 invalid JSON", "401", "403 key lacks global access", "500"}},
	{"Create User", "create-user", []string{
		"400 email missing", "400 invalid role", "400 invalid preferred_language", "400 collection_id not found for this client",
		"401", "403 no access to this client", "500"}},
	{"Update User", "update-user", []string{"400 no updatable field provided", "400 an invalid value", "401", "404 user not found", "500"}},
	{"Create Collection", "create-collection", []string{
		"400 name missing", "400 invalid JSON", "401", "403", "409 a collection with this name already exists for the client", "500"}},
	{"Get Collection Members", "collection-members", []string{"401", "403", "404 collection not found for this client", "500"}},
	{"Add Collection Member", "add-collection-member", []string{
		"400 user_infima_id missing", "400 invalid JSON", "401", "403", "404 collection not found for this client", "404 user not found for this client", "500"}},
	{"Remove Collection Member", "remove-collection-member", []string{"401", "403", "404 collection not found for this client", "500"}},
	{"Get Policies", "policies", []string{"401", "403", "500"}},
	{"Get Policy Users", "policy-users", []string{"400 invalid status value", "401", "403", "404 policy not found for this client", "500"}},
	{"Get Dark Web Exposures", "exposures", []string{
		"400 invalid start", "400 invalid end", "400 start after end", "401", "403 no access", "403 Dark Web Monitoring not enabled", "500"}},
	{"Retrieve Sent Emails", "sentemails", []string{
		"400 invalid parameters", "400 neither user_infima_id nor email_address given", "401", "403 user not in the partner's managed clients",
		"404 specified user does not exist", "429 rate limit exceeded", "500"}},
}

// faults are the conditions that requests meet by themselves: which of the
// route's bads they are, by the starts of their messages.
var faults = map[string][]string{
	"Create Client/400 company_name missing": {"company_name is required"},
	"Create Client/400 invalid JSON":         {"body must be"},

	"Create User/400 email missing":                                                   {"email is required"},
	"Create User/400 invalid role":                                                    {"role must be one of admin, executive, hr, finance, standard", "role must be"},
	"Create User/400 invalid preferred_language":                                      {"preferred_language must be one of en, es, fr-ca"},
	"Create User/400 collection_id not found for this client":                         {"collection_id is not a collection of this client"},
	"Update User/400 no updatable field provided":                                     {"body must name at least one field"},
	"Update User/400 an invalid value":                                                {"status must be", "role must be", "preferred_language must be"},
	"Update User/404 user not found":                                                  {"no such user"},
	"Create Collection/400 name missing":                                              {"name is required"},
	"Create Collection/400 invalid JSON":                                              {"body must be"},
	"Create Collection/409 a collection with this name already exists for the client": {"a collection with this name"},

	"Get Collection Members/404 collection not found for this client":   {"no such collection"},
	"Add Collection Member/400 user_infima_id missing":                  {"user_infima_id is required"},
	"Add Collection Member/400 invalid JSON":                            {"body must be"},
	"Add Collection Member/404 collection not found for this client":    {"no such collection"},
	"Add Collection Member/404 user not found for this client":          {"no such user"},
	"Remove Collection Member/404 collection not found for this client": {"no such collection"},

	"Get Policy Users/400 invalid status value":             {"status must be one of signed, unsigned, all"},
	"Get Policy Users/404 policy not found for this client": {"no such policy"},
	"Get Dark Web Exposures/400 invalid start":              {"start must be a timestamp"},
	"Get Dark Web Exposures/400 invalid end":                {"end must be a timestamp"},
	"Get Dark Web Exposures/400 start after end":            {"start must be before end"},

	"Retrieve Sent Emails/400 invalid parameters": {
		"body must be", "limit must be", "offset must be", "user_infima_id must be", "email_address must be", "message_types", "start_time must be"},
	"Retrieve Sent Emails/400 neither user_infima_id nor email_address given": {"user_infima_id is required"},
	"Retrieve Sent Emails/404 specified user does not exist":                  {"no such user"},
}

// neededBy are the tables without which the routes cannot do their work. Clients
// and users are made in several steps, of which the event is the last.
var neededBy = map[string]string{
	"create-client": "events", "create-user": "events", "update-user": "users",
	"create-collection": "collections", "collection-members": "collection_members", "add-collection-member": "collection_members", "remove-collection-member": "collection_members",
	"policies": "policies", "policy-users": "policies", "exposures": "exposures", "sentemails": "sent_emails",
}

// request is one that shows a condition: with a key, one of the bads.
type request struct {
	key string
	bad
}

// TestConditions: each row of v1's table of conditions, by name. A request that
// is refused changes nothing.
func TestConditions(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	shown := s.refusals(t)
	failing := newScene(t, setup{Options: v2test.Options{Log: io.Discard}})
	for _, d := range documented {
		shown[d.operation+"/500"] = failing.without(neededBy[d.route], failing.route(d.route))
	}
	shown["Retrieve Sent Emails/429 rate limit exceeded"] = sentEmailsLimit
	for _, d := range documented {
		for _, condition := range d.conditions {
			name := d.operation + "/" + condition
			if shown[name] == nil {
				t.Errorf("nothing shows %s", name)
				continue
			}
			t.Run(name, shown[name])
			delete(shown, name)
		}
	}
	for name := range shown {
		t.Errorf("%s is no condition of the table", name)
	}
}

// refusals are the conditions that are met by requests alone, as tests by name.
func (s *scene) refusals(t *testing.T) map[string]func(*testing.T) {
	t.Helper()
	requests := s.ofKeys()
	for name, messages := range faults {
		operation, condition, _ := strings.Cut(name, "/")
		for _, message := range messages {
			drawn := s.drawn(operation, statusOf(condition), message)
			if len(drawn) == 0 {
				t.Errorf("%s: no request ends in %q", name, message)
			}
			requests[name] = append(requests[name], drawn...)
		}
	}
	tests := map[string]func(*testing.T){}
	for name, list := range requests {
		operation, condition, _ := strings.Cut(name, "/")
		r, status := s.operation(operation), statusOf(condition)
		tests[name] = func(t *testing.T) {
			before := s.contents()
			for _, q := range list {
				envelope(t, q.path+" "+q.body, s.Do(r.Method, q.path, q.key, q.body), status, codeOf[status], q.message)
			}
			if s.contents() != before {
				t.Error("what was refused changed something")
			}
		}
	}
	return tests
}

// drawn are the bads of an operation whose messages begin so.
func (s *scene) drawn(operation string, status int, message string) (list []request) {
	for _, b := range s.bads(s.operation(operation).ID)[status] {
		if strings.HasPrefix(b.message, message) {
			list = append(list, request{s.Key, b})
		}
	}
	return list
}

// ofKeys are the requests that fail for whose they are, by condition.
func (s *scene) ofKeys() map[string][]request {
	s.T.Helper()
	stranger := s.service.Tenant("Stranger")
	theirs := s.User(stranger, s.Client(stranger, "Theirs").ID, "theirs@example.com").ID.UUID()
	archived := s.Client(s.Tenant, "Archived").ID
	gone := s.User(s.Tenant, archived, "gone@example.com").ID.UUID()
	s.archive(archived)
	reading, writing := []domain.Scope{domain.Read}, []domain.Scope{domain.Write}
	subset := s.NewKey(s.Tenant, slices.Concat(reading, writing), []domain.ClientID{s.sibling})
	lacking := map[domain.Scope]string{domain.Read: s.NewKey(s.Tenant, writing, nil), domain.Write: s.NewKey(s.Tenant, reading, nil)}
	with := func(operation, message string, keys ...string) (list []request) {
		for _, key := range keys {
			good := s.good(s.operation(operation))
			list = append(list, request{key, bad{good.path, good.body, message}})
		}
		return list
	}
	emails := func(message string, texts ...string) (list []request) {
		for _, text := range texts {
			list = append(list, request{s.Key, bad{"/v1/sentemails", text, message}})
		}
		return list
	}
	const noAccess, notManaged = "this key has no access to the client", "this key has no access to the user"
	requests := map[string][]request{
		"Create Client/403 key lacks global access":                  with("Create Client", "this operation needs a key with access to all clients", subset),
		"Create User/403 no access to this client":                   with("Create User", noAccess, stranger.Key, subset),
		"Update User/404 user not found":                             with("Update User", "no such user", stranger.Key, subset),
		"Get Dark Web Exposures/403 no access":                       with("Get Dark Web Exposures", noAccess, stranger.Key, subset),
		"Get Dark Web Exposures/403 Dark Web Monitoring not enabled": {{s.Key, bad{"/v1/clients/" + s.number(s.sibling) + "/darkweb/exposures", "", "Dark Web Monitoring is not enabled"}}},
		"Retrieve Sent Emails/403 user not in the partner's managed clients": slices.Concat(
			with("Retrieve Sent Emails", notManaged, stranger.Key, subset), emails(notManaged, `{"user_infima_id":"`+theirs+`"}`)),
		"Retrieve Sent Emails/404 specified user does not exist": emails("no such user",
			`{"user_infima_id":"`+gone+`"}`, `{"email_address":"gone@example.com"}`, `{"email_address":"theirs@example.com"}`),
	}
	for _, d := range documented {
		requests[d.operation+"/401"] = slices.Concat(with(d.operation, "send an API key", ""), with(d.operation, "the API key is unknown", "pk_wrong"))
		if slices.Contains(d.conditions, "403") {
			requests[d.operation+"/403"] = slices.Concat(with(d.operation, noAccess, stranger.Key, subset),
				with(d.operation, "this key lacks the scope", lacking[s.route(d.route).operation.Meta().Scope]))
		}
	}
	return requests
}

// without is a test of the route while a table is gone: a 500 of which nothing
// is seen outside, and nothing is left inside.
func (s *scene) without(table string, r *route) func(*testing.T) {
	return func(t *testing.T) {
		before, good := s.contents(), s.good(r)
		s.Exec("ALTER TABLE " + table + " RENAME TO elsewhere")
		got := s.Do(r.Method, good.path, s.Key, good.body)
		s.Exec("ALTER TABLE elsewhere RENAME TO " + table)
		envelope(t, r.ID, got, 500, domain.Internal, "")
		if says, want := got.Field("message"), domain.AsError(io.EOF).Message; says != want {
			t.Errorf("says %q", says)
		}
		if s.contents() != before {
			t.Error("what failed changed something")
		}
		s.Do(r.Method, good.path, s.Key, good.body).Want(r.Status)
	}
}

func sentEmailsLimit(t *testing.T) {
	s := newScene(t, setup{Options: v2test.Options{Limits: ginop.Limits{PerKey: 1, PerAddress: 10, PerClientFactor: 1}}})
	r := s.route("sentemails")
	good := s.good(r)
	s.Do(r.Method, good.path, s.Key, good.body).Want(200)
	got := s.Do(r.Method, good.path, s.Key, good.body)
	envelope(t, r.ID, got, 429, domain.RateLimited, "more than 1 requests a minute")
	if after := got.Header.Get("Retry-After"); after != "60" {
		t.Errorf("Retry-After is %q", after)
	}
}

// contents is a number that stands for the rows of all that v1 changes.
func (s *scene) contents() int {
	var rows []string
	for _, table := range []string{"clients", "users", "groups", "collections", "collection_members", "policies", "assignments", "id_registry", "events", "mail_requests", "idempotency_records"} {
		rows = append(rows, "SELECT hashtext('"+table+"' || r::text) AS hash FROM "+table+" AS r")
	}
	s.T.Helper()
	return s.Number("SELECT sum(hash) FROM (" + strings.Join(rows, " UNION ALL ") + ") AS rows")
}

func (s *service) route(id string) *route {
	s.T.Helper()
	i := slices.IndexFunc(s.facade.routes, func(r *route) bool { return r.ID == id })
	if i < 0 {
		s.T.Fatalf("%s is no route", id)
	}
	return s.facade.routes[i]
}

// operation is the route of an operation of the table.
func (s *scene) operation(name string) *route {
	s.T.Helper()
	for _, d := range documented {
		if d.operation == name {
			return s.route(d.route)
		}
	}
	s.T.Fatalf("%s is no operation of the table", name)
	return nil
}

// statusOf is the status that a condition begins with.
func statusOf(condition string) int {
	status, _ := strconv.Atoi(condition[:3])
	return status
}
