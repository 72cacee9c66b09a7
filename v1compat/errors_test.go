package v1compat

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/v2test"
)

// ask is a request to a route that succeeds with the right key.
type ask struct{ path, body string }

// scene is a partner with two clients, as routes' requests need them.
type scene struct {
	*service
	v2test.Partner
	client, sibling      domain.ClientID
	clientNo, collection string
	collectionID         domain.CollectionID
	foreignCollection    string
	user                 string
	userID               domain.UserID
	policy, template     string
	foreignPolicy        string
	report               string
	foreignReport        string
	siblingUser          string
	inactive             string          // a user of the client
	members              []domain.UserID // of the collection
	fresh                int
}

func newScene(t *testing.T, o setup) *scene {
	s := &scene{service: start(t, o)}
	s.Partner = s.service.AddPartner("Partner")
	s.client = s.AddClient(s.Partner, "Client").ID
	s.sibling = s.AddClient(s.Partner, "Sibling").ID
	s.clientNo = s.number(s.client)
	s.collectionID = s.AddCollection(s.client, "Own")
	s.collection = s.numberOf(idmap.Collection, idmap.UUID(s.collectionID))
	s.foreignCollection = s.numberOf(idmap.Collection, idmap.UUID(s.AddCollection(s.sibling, "Foreign")))
	s.userID = s.AddUser(s.Partner, s.client, "first@example.com").ID
	s.user = s.userID.UUID()
	s.siblingUser = s.AddUser(s.Partner, s.sibling, "second@example.com").ID.UUID()
	s.policy = s.numberOf(idmap.Policy, idmap.UUID(s.addPolicy(s.client, domain.TenantScope, s.client.UUID(), true)))
	s.foreignPolicy = s.numberOf(idmap.Policy, idmap.UUID(s.addPolicy(s.sibling, domain.TenantScope, s.sibling.UUID(), true)))
	s.report, s.foreignReport = s.addReport(s.client), s.addReport(s.sibling)
	for i := range byte(100) {
		id := domain.UserID{0: 1, 15: i + 1}
		s.insertUser(s.client, id, domain.Active, s.Clock.Now())
		s.members = append(s.members, id)
	}
	s.Exec(`INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
		SELECT c.client_id, c.id, u.id, c.created_at FROM collections AS c JOIN users AS u USING (client_id)
		WHERE c.client_id = $1 AND u.id <> $2`, s.client, s.user)
	s.Exec("UPDATE collections SET member_count = 100 WHERE client_id = $1", s.client)
	inactive := domain.UserID{0: 2}
	s.insertUser(s.client, inactive, domain.Inactive, s.Clock.Now())
	s.inactive = inactive.UUID()
	s.template = s.numberOf(idmap.Template, idmap.UUID(s.insertTemplate(9)))
	s.Exec("UPDATE clients SET dark_web_monitoring = false WHERE id = $1", s.sibling)
	return s
}

// addReport adds a report and returns its number.
func (s *scene) addReport(client domain.ClientID) string {
	id := db.NewID[domain.ReportKind]()
	s.insertReport(client, id, s.Clock.Now())
	return s.numberOf(idmap.Report, idmap.UUID(id))
}

// leaver is the member whom the last good request removes: each leaves once.
func (s *scene) leaver() domain.UserID { return s.members[s.fresh%len(s.members)] }

// good is a request to the route that succeeds, also when it is made again.
func (s *scene) good(r *route) ask {
	s.fresh++
	user := s.user
	if r.ID == "remove-collection-member" {
		user = s.leaver().UUID()
	}
	path := "/v1" + strings.NewReplacer(":client_id", s.clientNo, ":user_id", user, ":collection_id", s.collection, ":policy_id", s.policy, ":report_id", s.report).Replace(r.Path)
	body := map[string]string{
		"create-client": fmt.Sprintf(`{"company_name":"New %d"}`, s.fresh),
		"create-user":   fmt.Sprintf(`{"email":"new%d@example.com","collection_id":%s}`, s.fresh, s.collection),
		"update-user":   `{"status":"active"}`,

		"create-collection":     fmt.Sprintf(`{"name":"New %d"}`, s.fresh),
		"add-collection-member": `{"user_infima_id":"` + s.user + `"}`,
		"sentemails":            `{"user_infima_id":"` + s.user + `"}`,
		"sendphishing":          `{"user_id":"` + s.user + `","phishing_template":` + s.template + `}`,
		"exchange-ids":          `{"kind":"client","ids":[` + s.clientNo + `]}`,
		"start-rehearsal":       `{"minutes":1}`,
	}[r.ID]
	if r.ID == "start-rehearsal" { // as though the last one were long ago; the database may be away
		_, _ = s.DB.SQL().ExecContext(s.T.Context(), "DELETE FROM v1_rehearsals")
	}
	return ask{path, body}
}

// bad is a request that a route refuses, beside its method the path and the
// body, and the message.
type bad struct{ path, body, message string }

// bodies are bads of one path, by pairs of a body and a message.
func bodies(path string, pairs ...string) []bad {
	list := make([]bad, len(pairs)/2)
	for i := range list {
		list[i] = bad{path, pairs[2*i], pairs[2*i+1]}
	}
	return list
}

// badJSON are the bodies that are not a JSON object, and then more. missing is the message for an empty object, if that is
// known before v2 is called; else empty.
func badJSON(path, missing string, pairs ...string) []bad {
	const noJSON, noObject = "body must be valid JSON in UTF-8", "body must be a JSON object"
	noNUL := "x must not contain a NUL"
	if missing != "" {
		noNUL += "; " + missing
		pairs = append([]string{`{}`, missing}, pairs...)
	}
	return append(bodies(path, ``, noObject+", but is empty", `{`, noJSON, `[]`, noObject, `null`, noObject,
		`{} {}`, "body must be one JSON object and nothing after it", "{\"x\":\"\xff\"}", noJSON, `{"x":"\u0000"}`, noNUL,
		`{"x":`+strings.Repeat("[", 2000), "body must not be nested deeper than 1000 levels",
		"\ufeff[]", noObject), bodies(path, pairs...)...)
}

// The messages of several routes.
const (
	noUser       = "no such user, or this key has no access to it"
	noCollection = "no such collection, or this key has no access to it"
	noPolicy     = "no such policy, or this key has no access to it"
	noReport     = "no such report, or this key has no access to it"
	notNumber    = " must be an integer from 1 to 2147483647"
	notTime      = " must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z"
	notMoment    = " must be a timestamp such as 2026-01-31T08:00:00Z, or a date such as 2026-01-31"
	notV1Message = " must be one of training-invite, phishing, phish-reminder, certificate, monthly-report"
)

func tooLarge(path string) []bad {
	return bodies(path, `{"x":"`+strings.Repeat("x", op.MaxBody)+`"}`, "the body is larger than 1 MiB")
}

// badWindow are the bads of a list's window.
func badWindow(path string) []bad {
	return []bad{{path + "?limit=x", "", "limit must be an integer"}, {path + "?offset=-1", "", "offset must be at least 0"}, {path + "?offset=x", "", "offset must be an integer"}}
}

// bads are the requests that each route refuses, with each status that is its own.
func (s *scene) bads() map[string]map[int][]bad {
	users, user := "/v1/clients/"+s.clientNo+"/users", "/v1/users/"+s.user
	long, email := strings.Repeat("é", 501), strings.Repeat("e", 250)+"@example.com"
	all := map[string]map[int][]bad{
		"exchange-ids": badExchanges(), "start-rehearsal": badRehearsals(),
		"partner": {400: {{"/v1/partner?a=%zz", "", "query is not well-formed; each % must begin an escape, and & must separate the parameters"}, {"/v1/partner?a=1;b=2", "", "query is not well-formed; each % must begin an escape, and & must separate the parameters"}}},
		"clients": {400: append(badWindow("/v1/clients"), bad{"/v1/clients?ids=x", "", "ids must be a list of integers from 1 to 2147483647"})},
		"create-client": {
			400: badJSON("/v1/clients", "company_name is required", `{"company_name":null}`, "company_name is required",
				`{"company_name":" "}`, "company_name must not be blank", `{"company_name":7}`, "company_name must be a string", `{"name":"New"}`, "company_name is required",
				`{"company_name":"`+long[:402]+`"}`, "company_name must be at most 200 characters", `{"company_name":"a\u0000"}`, "company_name must not contain a NUL"),
			409: bodies("/v1/clients", `{"company_name":"CLIENT"}`, "a client with this name already exists"),
			413: tooLarge("/v1/clients"),
		},
		"users": {400: append(badWindow(users), bad{users + "?status=gone", "", "status must be one of active, inactive, all"},
			bad{"/v1/clients/0/users", "", "client_id" + notNumber})},
		"create-user": {
			400: append(badJSON(users, "email is required", `{"email":null}`, "email is required", `{"email":""}`, "email is required",
				`{"email":"nobody"}`, "email must be an email address", `{"email":"`+email+`"}`, "email must be at most 254 characters",
				`{"email":"a@example.com","role":"boss"}`, "role must be one of admin, executive, hr, finance, standard", `{"email":"a@example.com","role":7}`, "role must be a string",
				`{"email":"a@example.com","role":""}`, "role must be one of admin, executive, hr, finance, standard", `{"email":"a@example.com","preferred_language":""}`, "preferred_language must be one of en, es, fr-ca",
				`{"email":"a@example.com","collection_id":""}`, "collection_id"+notNumber, `{"email":" ","first_name":"`+long+`"}`, "email must not be blank; first_name must be at most 200 characters",
				`{"email":"nobody","role":"boss"}`, "role must be one of admin, executive, hr, finance, standard; email must be an email address",
				`{"collection_id":"x"}`, "collection_id must be an integer from 1 to 2147483647; email is required",
				`{"email":"a@example.com","preferred_language":"fr"}`, "preferred_language must be one of en, es, fr-ca", `{"email":"a@example.com","first_name":"`+long+`"}`, "first_name must be at most 200 characters",
				`{"email":"a@example.com","last_name":[]}`, "last_name must be a string", `{"email":"a@example.com","department":"`+long+`"}`, "department must be at most 500 characters",
				`{"email":"a@example.com","job_title":"`+long+`"}`, "job_title must be at most 500 characters", `{"email":"a@example.com","manager_email":"x"}`, "manager_email must be an email address",
				`{"email":"a@example.com","collection_id":2147483647}`, "collection_id is not a collection of this client",
				`{"email":"first@example.com","collection_id":2147483647}`, "collection_id is not a collection of this client", // checked before the clash
				`{"email":"a@example.com","collection_id":`+s.foreignCollection+`}`, "collection_id is not a collection of this client",
				`{"email":"a@example.com","collection_id":"`+s.collection+`"}`, "collection_id"+notNumber, `{"email":"a@example.com","collection_id":0}`, "collection_id"+notNumber,
				`{"email":"a@example.com","collection_id":1.5}`, "collection_id"+notNumber, `{"email":"a@example.com","collection_id":1e-1}`, "collection_id"+notNumber,
				`{"email":"a@example.com","collection_id":{}}`, "collection_id"+notNumber),
				bad{"/v1/clients/007/users", `{"email":"a@example.com"}`, "client_id" + notNumber}),
			409: bodies(users, `{"email":"FIRST@example.com"}`, "a user with this email address already exists for this client"),
			413: tooLarge(users),
		},
		"update-user": {
			400: badJSON(user, "", `{}`, "body must name at least one field to change", `{"email":"x@example.com"}`, "body must name at least one field to change", `{"status":null,"role":null}`, "body must name at least one field to change",
				`{"status":""}`, "status must be one of active, inactive", `{"status":"active","role":""}`, "role must be one of admin, executive, hr, finance, standard", `{"status":"active","preferred_language":""}`, "preferred_language must be one of en, es, fr-ca",
				`{"status":"gone"}`, "status must be one of active, inactive", `{"status":true}`, "status must be a string",
				`{"role":"boss"}`, "role must be one of admin, executive, hr, finance, standard", `{"status":"active","preferred_language":"de"}`, "preferred_language must be one of en, es, fr-ca"),
			404: nobodies("", `{"status":"active"}`),
			413: tooLarge(user),
		},
	}
	maps.Copy(all, s.badMail())
	maps.Copy(all, s.badParts())
	return all
}

// nobodies are requests for users who do not exist.
func nobodies(path, body string) (list []bad) {
	for _, id := range []string{unusedID, "00000000-0000-0000-0000-000000000000", "x", "usr_01jhz5q7rgec7t3vfd9w8x2k4m"} {
		list = append(list, bad{"/v1/users/" + id + path, body, noUser})
	}
	return list
}

// badParts are the bads of the routes of what clients and users have.
func (s *scene) badParts() map[string]map[int][]bad {
	client, user := "/v1/clients/"+s.clientNo, "/v1/users/"+s.user
	collections, policies, exposures := client+"/collections", client+"/policies", client+"/darkweb/exposures"
	members, nowhere, foreign := collections+"/"+s.collection+"/members", collections+"/2147483647/members", collections+"/"+s.foreignCollection+"/members"
	add := `{"user_infima_id":"` + s.user + `"}`
	return map[string]map[int][]bad{
		"collections": {400: append(badWindow(collections), bad{"/v1/clients/0/collections", "", "client_id" + notNumber})},
		"create-collection": {
			400: badJSON(collections, "name is required", `{"name":null}`, "name is required", `{"name":" "}`, "name must not be blank", `{"name":7}`, "name must be a string",
				`{"name":"`+strings.Repeat("é", 201)+`"}`, "name must be at most 200 characters", `{"name":"x","description":"`+strings.Repeat("é", 2001)+`"}`, "description must be at most 2000 characters"),
			409: bodies(collections, `{"name":"OWN"}`, "a collection with this name already exists for this client"),
			413: tooLarge(collections),
		},
		"collection-members": {
			400: append(badWindow(members), bad{collections + "/007/members", "", "collection_id" + notNumber}),
			404: {{nowhere, "", noCollection}, {foreign, "", noCollection}},
		},
		"add-collection-member": {
			400: badJSON(members, "user_infima_id is required", `{"user_infima_id":null}`, "user_infima_id is required", `{"user_infima_id":" "}`, "user_infima_id is required", `{"user_infima_id":7}`, "user_infima_id must be a string"),
			404: append(bodies(members, `{"user_infima_id":"`+unusedID+`"}`, noUser, `{"user_infima_id":"x"}`, noUser, `{"user_infima_id":"`+s.siblingUser+`"}`, noUser),
				bad{nowhere, add, noCollection}, bad{foreign, add, noCollection}),
			413: tooLarge(members),
		},
		"remove-collection-member": {
			400: {{collections + "/x/members/" + s.user, "", "collection_id" + notNumber}},
			404: {{members + "/" + unusedID, "", "the user is not a member of this collection"}, {members + "/x", "", "the user is not a member of this collection"}, {members + "/" + s.siblingUser, "", "the user is not a member of this collection"},
				{nowhere + "/" + s.user, "", noCollection}, {foreign + "/" + s.user, "", noCollection}},
		},
		"policies": {400: append(badWindow(policies), bad{"/v1/clients/0/policies", "", "client_id" + notNumber})},
		"policy-users": {
			400: append(badWindow(policies+"/"+s.policy+"/users"), bad{policies + "/" + s.policy + "/users?status=gone", "", "status must be one of signed, unsigned, all"},
				bad{policies + "/0/users", "", "policy_id" + notNumber}),
			404: {{policies + "/2147483647/users", "", noPolicy}, {policies + "/" + s.foreignPolicy + "/users", "", noPolicy}},
		},
		"exposures": {403: {{"/v1/clients/" + s.number(s.sibling) + "/darkweb/exposures", "", "Dark Web Monitoring is not enabled for this client"}}, 400: append(badWindow(exposures), bad{exposures + "?start=0000-01-01T00:00:00Z", "", "start" + notMoment}, bad{exposures + "?start=x", "", "start" + notMoment}, bad{exposures + "?start=2026-02-30", "", "start" + notMoment},
			bad{exposures + "?end=x", "", "end" + notMoment}, bad{exposures + "?start=2026-02-02&end=2026-02-01", "", "start must not be after end"},
			bad{exposures + "?start=2026-02-01T00:00:01Z&end=2026-02-01T00:00:00Z", "", "start must not be after end"})},
		"reports": {400: append(badWindow(client+"/reports"), bad{"/v1/clients/0/reports", "", "client_id" + notNumber})},
		"download-report": {
			400: append(badWindow(client+"/reports/"+s.report), bad{client + "/reports/0", "", "report_id" + notNumber}, bad{client + "/reports/007", "", "report_id" + notNumber},
				bad{client + "/reports/x", "", "report_id" + notNumber}, bad{client + "/reports/2147483648", "", "report_id" + notNumber}),
			404: {{client + "/reports/2147483647", "", noReport}, {client + "/reports/" + s.foreignReport, "", noReport}},
		},
		"usage": {400: {{"/v1/usage?days=x", "", "days must be an integer"}, {"/v1/usage?days=0", "", "days must be between 1 and 400"},
			{"/v1/usage?days=401", "", "days must be between 1 and 400"}}},
		"training": {400: badWindow(user + "/training"), 404: nobodies("/training", "")},
		"phishing": {400: badWindow(user + "/phishing"), 404: nobodies("/phishing", "")},
	}
}

// badMail are the bads of the routes that send and list mail.
func (s *scene) badMail() map[string]map[int][]bad {
	const emails, sends = "/v1/sentemails", "/v1/sendphishing"
	user, template := `"user_id":"`+s.user+`"`, `"phishing_template":`+s.template
	infima := `"user_infima_id":"` + s.user + `"`
	return map[string]map[int][]bad{
		"sentemails": {
			400: append(badJSON(emails, "", `{}`, "user_infima_id is required unless an email address is given", `{"user_infima_id":null,"email_address":null}`, "user_infima_id is required unless an email address is given", `{"email_address":" "}`, "user_infima_id is required unless an email address is given",
				`{"user_infima_id":"x"}`, "user_infima_id must be a UUID", `{"user_infima_id":7}`, "user_infima_id must be the ID of a user", `{"user_infima_id":"","email_address":"first@example.com"}`, "user_infima_id must be a UUID",
				`{`+infima+`,"start_time":""}`, "start_time"+notTime, `{`+infima+`,"message_types":[""]}`, "message_types[0]"+notV1Message, `{`+infima+`,"message_types":""}`, "message_types must be an array",
				`{"email_address":7}`, "email_address must be a string", `{`+infima+`,"message_types":"phishing"}`, "message_types must be an array",
				`{`+infima+`,"message_types":["phishing","welcome"]}`, "message_types[1]"+notV1Message, `{`+infima+`,"message_types":[null]}`, "message_types[0] must not be null",
				`{`+infima+`,"start_time":"yesterday"}`, "start_time"+notTime, `{`+infima+`,"start_time":7}`, "start_time"+notTime),
				bad{emails + "?limit=x", `{` + infima + `}`, "limit must be an integer"}, bad{emails + "?offset=-1", `{` + infima + `}`, "offset must be at least 0"}),
			404: bodies(emails, `{"user_infima_id":"`+unusedID+`"}`, noUser, `{"user_infima_id":"00000000-0000-0000-0000-000000000000"}`, noUser,
				`{"user_infima_id":"`+unusedID+`","email_address":"first@example.com"}`, noUser, `{"email_address":"nobody@example.com"}`, noUser, `{"email_address":"nobody"}`, noUser),
			413: tooLarge(emails),
		},
		"sendphishing": {
			400: badJSON(sends, "user_id is required; phishing_template is required", `{"user_id":null,`+template+`}`, "user_id is required", `{"user_id":"",`+template+`}`, "user_id must be a UUID", `{"user_id":""}`, "user_id must be a UUID; phishing_template is required", `{"user_id":"`+s.user+`","phishing_template":""}`, "phishing_template"+notNumber,
				`{`+user+`,`+template+`,"send_time":""}`, "send_time"+notTime,
				`{`+user+`}`, "phishing_template is required", `{"user_id":"`+unusedID+`"}`, "phishing_template is required", `{`+user+`,"phishing_template":2147483647}`, "phishing_template is not a phishing template", `{`+user+`,"phishing_template":"x"}`, "phishing_template"+notNumber,
				`{`+user+`,`+template+`,"send_time":"x"}`, "send_time"+notTime, `{"user_id":"`+s.inactive+`",`+template+`}`, "user_id is an inactive user"),
			404: bodies(sends, `{"user_id":"`+unusedID+`",`+template+`}`, noUser),
			413: tooLarge(sends),
		},
	}
}

// envelope fails the test unless the answer is an error as v1 writes it, with the whole message.
func envelope(t *testing.T, where string, r v2test.Response, status int, code domain.Code, message string) {
	t.Helper()
	body := r.JSON()
	text, _ := body["message"].(string)
	if r.Status != status || body["status"] != float64(status) || body["error"] != string(code) || text != message ||
		body["request_id"] != r.Header.Get("X-Request-Id") || len(body) != 4 {
		t.Errorf("%s: %d %s, not %d %s %q", where, r.Status, r.Body, status, code, message)

	}
}

var codeOf = map[int]domain.Code{
	400: domain.InvalidRequest, 401: domain.Unauthorized, 403: domain.Forbidden, 404: domain.NotFound, 409: domain.Conflict,
	413: domain.PayloadTooLarge, 429: domain.RateLimited, 500: domain.Internal, 503: domain.Unavailable,
}

// documented are the conditions of v1's own document, by route and status, as the messages
// of their errors begin. Beside them are those of several routes: 401 and the scope's 403
// are TestErrorMatrix's too, a client's 403 and a user's 404 TestNoProbing's, 429
// TestBudget's, and 500 TestInternalErrors'. TestSentEmails has the 403 of that route.
var documented = map[string]map[int][]string{
	"create-client": {400: {"company_name is required", "body must be"}},
	"create-user": {400: {
		"email is required", "role must be one of", "preferred_language must be one of", "collection_id is not a collection of this client",
	}},
	"update-user": {
		400: {"body must name at least one field", "status must be", "role must be", "preferred_language must be"}, 404: {"no such user"},
	},
	"create-collection":        {400: {"name is required", "body must be"}, 409: {"a collection with this name"}},
	"collection-members":       {404: {"no such collection"}},
	"add-collection-member":    {400: {"user_infima_id is required", "body must be"}, 404: {"no such collection", "no such user"}},
	"remove-collection-member": {404: {"no such collection"}},
	"policy-users":             {400: {"status must be one of"}, 404: {"no such policy"}},
	"exposures": {
		400: {"start must be a timestamp", "end must be a timestamp", "start must not be after end"}, 403: {"Dark Web Monitoring is not enabled"},
	},
	"sentemails": {
		400: {"body must be", "user_infima_id must be", "email_address must be", "message_types", "start_time must be", "user_infima_id is required"},
		404: {"no such user"},
	},
}

// contents is a number that stands for the rows of all that v1 changes.
func (s *scene) contents() int {
	var rows []string
	for _, table := range []string{"clients", "users", "groups", "collections", "collection_members", "policies", "assignments", "id_registry", "events", "outbox", "phishing_results", "mail_requests", "idempotency_records"} {
		rows = append(rows, "SELECT hashtext('"+table+"' || r::text) AS hash FROM "+table+" AS r")
	}
	s.T.Helper()
	return s.Number("SELECT sum(hash) FROM (" + strings.Join(rows, " UNION ALL ") + ") AS rows")
}

// TestErrorMatrix: each route in each of the errors that are its own, none of which
// changes anything. A status that a route documents without being shown here fails.
func TestErrorMatrix(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	readOnly, writeOnly := s.AddKey(s.Partner, []domain.Scope{domain.Read}, nil), s.AddKey(s.Partner, []domain.Scope{domain.Write}, nil)
	bads := s.bads()
	for _, r := range s.facade.routes {
		own := bads[r.ID]
		for _, status := range r.Fails {
			if len(own[status]) == 0 {
				t.Errorf("%s: no request ends in %d", r.ID, status)
			}
		}
		before := s.contents()
		for status, requests := range own {
			for _, b := range requests {
				where := fmt.Sprintf("%s %s %.60s", r.Method, b.path, b.body)
				envelope(t, where, s.Do(r.Method, b.path, s.Key, b.body, "X-Request-Id", "abc"), status, codeOf[status], b.message)
			}
		}
		for status, messages := range documented[r.ID] {
			for _, message := range messages {
				if !slices.ContainsFunc(own[status], func(b bad) bool { return strings.HasPrefix(b.message, message) }) {
					t.Errorf("%s: no request is answered %d %q", r.ID, status, message)
				}
			}
		}
		if s.contents() != before {
			t.Errorf("%s: what was refused changed something", r.ID)
		}

		good := s.good(r)
		for _, query := range []string{"?ids=1;2", "?status=inactive;x=1", "?start=%zz", "?x=%"} {
			where := r.ID + query
			envelope(t, where, s.Do(r.Method, good.path+query, s.Key, good.body), 400, domain.InvalidRequest, "query is not well-formed; each % must begin an escape, and & must separate the parameters")
		}
		envelope(t, r.ID, s.Do(r.Method, good.path, "", good.body), 401, domain.Unauthorized, "send an API key in the header X-API-Key")
		envelope(t, r.ID, s.Do(r.Method, good.path, "pk_wrong", good.body), 401, domain.Unauthorized, "the API key is unknown, expired or revoked")
		lacking := map[domain.Scope]string{domain.Read: writeOnly, domain.Write: readOnly}[r.operation.Meta().Scope]
		envelope(t, r.ID, s.Do(r.Method, good.path, lacking, "{"), 403, domain.Forbidden, "this key lacks the scope "+string(r.operation.Meta().Scope))
		s.Do(r.Method, good.path, s.Key, good.body).Want(r.Status)
		envelope(t, r.ID, s.Do("PATCH", good.path, s.Key, good.body), 404, domain.NotFound, "no such operation; see /v1/openapi.yaml")
	}
	envelope(t, "unknown", s.Get("/v1/nothing", s.Key), 404, domain.NotFound, "no such operation; see /v1/openapi.yaml")
}

// TestNoProbing: a client that is unknown, archived, another partner's or beyond
// the key's subset is one answer, byte for byte (decisions 5.2).
func TestNoProbing(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	subset := s.AddKey(s.Partner, []domain.Scope{domain.Read, domain.Write}, []domain.ClientID{s.sibling})
	stranger := s.service.AddPartner("Stranger")
	archived := s.AddClient(s.Partner, "Archived").ID
	lost := s.AddUser(s.Partner, archived, "lost@example.com").ID.UUID()
	s.archive(archived)
	deleted := db.NewID[domain.ClientKind]()
	s.insertClient(s.ID, deleted, "Deleted", s.Clock.Now())
	gone := s.number(deleted)
	s.Exec("DELETE FROM clients WHERE id = $1", deleted)
	for _, r := range s.facade.routes {
		if !strings.Contains(r.Path, ":client_id") {
			continue
		}
		answers := map[string][]string{}
		for name, c := range map[string]struct{ number, key string }{
			"unknown": {"2147483647", s.Key}, "archived": {s.number(archived), s.Key}, "deleted": {gone, s.Key},
			"other partner": {s.clientNo, stranger.Key}, "subset": {s.clientNo, subset},
		} {
			path := "/v1" + strings.NewReplacer(":client_id", c.number, ":collection_id", s.collection, ":policy_id", s.policy, ":user_id", s.user, ":report_id", s.report).Replace(r.Path)
			got := s.Do(r.Method, path, c.key, s.good(r).body, "X-Request-Id", "same")
			envelope(t, r.ID+" "+name, got, 403, domain.Forbidden, "this key has no access to the client")
			answers[string(got.Body)] = append(answers[string(got.Body)], name)
		}
		if len(answers) != 1 {
			t.Errorf("%s: %v", r.ID, answers)
		}
	}
	for name, c := range map[string]struct{ user, key string }{
		"archived": {lost, s.Key}, "other partner": {s.user, stranger.Key}, "subset": {s.user, subset}, "unknown": {strings.Repeat("0", 8) + s.user[8:], s.Key},
	} {
		for _, id := range []string{"update-user", "training", "phishing", "sendphishing"} {
			r := s.route(id)
			good := s.good(r)
			path, body := strings.ReplaceAll(good.path, s.user, c.user), strings.ReplaceAll(good.body, s.user, c.user)
			envelope(t, id+" of "+name, s.Do(r.Method, path, c.key, body), 404, domain.NotFound, noUser)
		}
	}
	envelope(t, "create with a subset", s.Do("POST", "/v1/clients", subset, `{"company_name":"x"}`), 403, domain.Forbidden, "this operation needs a key with access to all clients")
}

// TestBudget: 429 with Retry-After from every route, once the key's 600 are used
// up by either version.
func TestBudget(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{Options: v2test.Options{Limits: ginop.Limits{PerKey: 3, PerAddress: 2, PerClientFactor: 1}}})
	for range 3 {
		s.Get("/v2/partner", s.Key).Want(200)
	}
	for _, r := range s.facade.routes {
		good := s.good(r)
		got := s.Do(r.Method, good.path, s.Key, good.body)
		envelope(t, r.ID, got, 429, domain.RateLimited, "more than 3 requests a minute with this key; retry after the time in Retry-After")
		if after := got.Header.Get("Retry-After"); after != "60" {
			t.Errorf("%s: Retry-After is %q", r.ID, after)
		}
	}
	s.Get("/v1/partner", "").Want(401)
	s.Get("/v2/partner", "").Want(401)
	envelope(t, "no key", s.Get("/v1/partner", ""), 429, domain.RateLimited, "more than 2 requests a minute without a valid key from this IP address; retry after the time in Retry-After")
	s.Get("/v1/openapi.yaml", "").Want(200)
}
