package v1compat

import (
	"slices"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/v2test"
)

// badExchanges are the bads of the exchange of ids.
func badExchanges() map[int][]bad {
	const path = "/v1/ids/exchange"
	return map[int][]bad{
		400: badJSON(path, "kind is required; ids is required", `{"kind":null,"ids":null}`, "kind is required; ids is required",
			`{"kind":"client"}`, "ids is required", `{"ids":[1]}`, "kind is required", `{"kind":"","ids":[1]}`, "kind must be one of client, user, admin, collection, policy, report, template, group",
			`{"kind":"webhook","ids":[1]}`, "kind must be one of client, user, admin, collection, policy, report, template, group", `{"kind":"Client","ids":[1]}`, "kind must be one of client, user, admin, collection, policy, report, template, group", `{"kind":7,"ids":[1]}`, "kind must be a string",
			`{"kind":"client","ids":17}`, "ids must be an array", `{"kind":"client","ids":"17"}`, "ids must be an array", `{"kind":"client","ids":{}}`, "ids must be an array",
			`{"kind":"client","ids":[1`+strings.Repeat(",1", 1000)+`]}`, "ids must contain at most 1000 items", `{"kind":"client","ids":["\u0000"]}`, "ids[0] must not contain a NUL"),
		413: tooLarge(path),
	}
}

// objects are one object of each kind by the kinds' names.
type objects map[string]idmap.UUID

// objectsOf makes a client's objects, one of each kind.
func (s *service) objectsOf(partner domain.PartnerID, client domain.ClientID) objects {
	s.T.Helper()
	user, admin := db.NewID[domain.UserKind](), db.NewID[domain.AdminKind]()
	group, report := db.NewID[domain.GroupKind](), db.NewID[domain.ReportKind]()
	s.insertUser(client, user, domain.Active, s.Clock.Now())
	s.insertReport(client, report, s.Clock.Now())
	s.Exec("INSERT INTO groups (client_id, id, name, manual, created_at) VALUES ($1, $2, 'g', false, now())", client, group)
	s.Exec(`INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at)
		VALUES ($1, $2, $3, $4, 'An Admin', 'owner', now())`, admin, partner, client, admin.UUID()+"@example.com")
	return objects{
		"client": idmap.UUID(client), "user": idmap.UUID(user), "admin": idmap.UUID(admin), "group": idmap.UUID(group), "report": idmap.UUID(report),
		"collection": idmap.UUID(s.AddCollection(client, "c")), "policy": idmap.UUID(s.addPolicy(client, domain.TenantScope, client.UUID(), true)),
	}
}

// delete takes the rows of what objectsOf made, and the client's own, out of the
// database.
func (s *service) delete(o objects) {
	s.T.Helper()
	client := domain.ClientID(o["client"])
	for _, table := range []string{"users", "admins", "reports", "collections", "policies", "groups", "program_courses", "risk_history", "client_risks"} {
		s.Exec("DELETE FROM "+table+" WHERE client_id = $1", client)
	}
	s.Exec("DELETE FROM clients WHERE id = $1", client)
}

// tokens are the ids of an object in both versions, as they are written.
func (s *service) tokens(kind string, id idmap.UUID) (old, newer string) {
	s.T.Helper()
	newer = `"` + namings[kind].show(id) + `"`
	switch kind {
	case "user", "admin":
		return `"` + domain.UserID(id).UUID() + `"`, newer
	case "report":
		return `"` + s.numberOf(idmap.Report, id) + `"`, newer
	}
	numbers, err := idmap.ParseKind(kind)
	if err != nil {
		s.T.Fatal(err)
	}
	return s.numberOf(numbers, id), newer
}

// exchange exchanges ids, which are written as in the body.
func (s *service) exchange(key, kind string, ids ...string) v2test.Response {
	s.T.Helper()
	return s.Do("POST", "/v1/ids/exchange", key, `{"kind":"`+kind+`","ids":[`+strings.Join(ids, ",")+`]}`, "X-Request-Id", "same")
}

// exchanged is the body of an exchange's answer.
func exchanged(items, invalid []string) string {
	return `{"items":[` + strings.Join(items, ",") + `],"invalid":[` + strings.Join(invalid, ",") + `]}`
}

func item(old, newer string) string { return `{"v1":` + old + `,"v2":` + newer + `}` }

// noIDs are values that are no id of any kind, as an exchange is to repeat them.
var noIDs = []string{
	`null`, `true`, `false`, `0`, `-1`, `-0`, `17.0`, `1e3`, `1.5`, `2147483648`, `1099511627776`, `1e300`, `123456789012345678901234567890`,
	`""`, `" "`, `"x"`, `"17.0"`, `"007"`, `"+7"`, `"0"`, `"-1"`, `"2147483648"`, `{}`, `[]`, `[17]`, `{"v1":17}`, `{"a":1,"a":2}`,
	`"cli_"`, `"cli_01jhz5q7rgec7t3vfd9w8x2k4"`, `"cli_81jhz5q7rgec7t3vfd9w8x2k4m"`, `"whk_01jhz5q7rgec7t3vfd9w8x2k4m"`, `"CLI_01JHZ5Q7RGEC7T3VFD9W8X2K4M"`,
	`"\u0063li"`, `"\/é\u00e9\ud83d\ude00<&>"`, `"{01980000-0000-7000-8000-000000000000}"`, `"01980000000070008000000000000000"`,
}

// TestExchange: both directions of every kind, mixed, in the order of the inputs,
// and what is no id as it was given (decisions 11.3).
func TestExchange(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
	first, second := s.objectsOf(tenant.ID, s.AddClient(tenant, "A").ID), s.objectsOf(tenant.ID, s.AddClient(tenant, "B").ID)
	first["template"], second["template"] = idmap.UUID(s.insertTemplate(1)), idmap.UUID(s.insertTemplate(2))
	for kind := range namings {
		t.Run(kind, func(t *testing.T) {
			old1, new1 := s.tokens(kind, first[kind])
			old2, new2 := s.tokens(kind, second[kind])
			ids := slices.Concat(noIDs[:5], []string{old2, new1}, noIDs, []string{new2, old1, old1, new1, new2})
			if old1[0] != '"' { // JSON's integers may have a fraction of zero
				ids = append(ids, old1+".0", old1+"e0")
			}
			want := exchanged([]string{item(old2, new2), item(old1, new1)}, noIDs)
			for range 2 {
				if got := s.exchange(tenant.Key, kind, ids...).Want(200); string(got.Body) != want {
					t.Errorf("got  %s\nwant %s", got.Body, want)
				}
			}
			if got := s.exchange(tenant.Key, kind).Want(200); string(got.Body) != exchanged(nil, nil) {
				t.Errorf("nothing is exchanged for %s", got.Body)
			}

			// What would be an id of another kind is none of this one.
			var others []string
			for other := range namings {
				if other != kind {
					_, newer := s.tokens(other, first[other])
					others = append(others, newer)
				}
			}
			if got := s.exchange(tenant.Key, kind, others...).Want(200); string(got.Body) != exchanged(nil, others) {
				t.Errorf("other kinds: %s", got.Body)
			}
		})
	}
}
