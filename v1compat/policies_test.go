package v1compat

import (
	"net/http"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/v2test"
)

// addPolicy adds a policy that is valid for 30 days.
func (s *service) addPolicy(client domain.ClientID, scope domain.ScopeType, scopeID string, mustSign bool) domain.PolicyID {
	s.T.Helper()
	id := db.NewID[domain.PolicyKind]()
	s.Clock.Advance(time.Second)
	s.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, renewal_period_days, reviewed_at, created_at, updated_at)
		VALUES ($1, $2, 'Acceptable use', $3, $4, $5, 30, $6, $6, $6)`, client, id, scope, scopeID, mustSign, s.Clock.Now())
	return id
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	client := s.Client(tenant, "Client")
	ada, bob := s.User(tenant, client.ID, "a@example.com"), s.User(tenant, client.ID, "b@example.com")
	collection := s.Collection(client.ID, "Sales")
	all := s.addPolicy(client.ID, domain.TenantScope, client.ID.UUID(), true)
	s.addPolicy(client.ID, domain.GroupScope, ada.Group.ID.UUID(), false)
	s.addPolicy(client.ID, domain.CollectionScope, collection.UUID(), true)
	s.Signal(domain.Signal{Type: domain.PolicySigned, User: bob.ID, Policy: all, Version: 1, At: s.Clock.Now()})
	numbers := []string{s.number(client.ID), s.numberOf(idmap.Group, idmap.UUID(ada.Group.ID)), s.numberOf(idmap.Collection, idmap.UUID(collection))}
	s.Exec("DELETE FROM collections")

	path := "/v1/clients/" + numbers[0] + "/policies"
	got := s.Get(path, tenant.Key).Want(http.StatusOK)
	want := `{"items":[` +
		`{"id":1,"title":"Acceptable use","version":1,"scope_type":"tenant","scope_id":` + numbers[0] + `,"requires_acknowledgment":true,"renewal_period_days":30,"created_date":"2026-06-15T12:00:01Z","audience_user_count":2,"acknowledged_count":1,"acknowledged_percentage":50},` +
		`{"id":2,"title":"Acceptable use","version":1,"scope_type":"user_container","scope_id":` + numbers[1] + `,"requires_acknowledgment":false,"renewal_period_days":30,"created_date":"2026-06-15T12:00:02Z"},` +
		`{"id":3,"title":"Acceptable use","version":1,"scope_type":"collection","scope_id":` + numbers[2] + `,"requires_acknowledgment":true,"renewal_period_days":30,"created_date":"2026-06-15T12:00:03Z","audience_user_count":0,"acknowledged_count":0,"acknowledged_percentage":0}` +
		`],"limit":200,"offset":0,"total":3}`
	if string(got.Body) != want {
		t.Errorf("got  %s\nwant %s", got.Body, want)
	}

	users := path + "/1/users"
	for status, want := range map[string]int{"": 2, "?status=all": 2, "?status=signed": 1, "?status=unsigned": 1} {
		if got := s.list(users+status, tenant.Key); got.Total != want || len(got.Items) != want || got.Limit != 200 {
			t.Errorf("%s: %+v", status, got)
		}
	}
	signed := s.Get(users+"?status=signed", tenant.Key).Want(http.StatusOK)
	item := `{"items":[{"id":"` + bob.ID.UUID() + `","email":"b@example.com","name":"Ada Example","acknowledged":true,"acknowledged_at":"2026-06-15T12:00:03Z"}],"limit":200,"offset":0,"total":1}`
	if string(signed.Body) != item {
		t.Errorf("signed by %s\nwant %s", signed.Body, item)
	}
	if first := s.list(users+"?limit=1", tenant.Key); first.Total != 2 || len(first.Items) != 1 || first.Items[0]["acknowledged_at"] != nil {
		t.Errorf("the first is %+v", first)
	}
	if second := s.list(users+"?limit=1&offset=1", tenant.Key); second.Total != 2 || second.Items[0]["email"] != "b@example.com" {
		t.Errorf("the second is %+v", second)
	}
	s.Get(users+"?status=lapsed", tenant.Key).Want(http.StatusBadRequest)
	s.Get(path+"/99/users", tenant.Key).Want(http.StatusNotFound)
	s.Get(path+"/x/users", tenant.Key).Want(http.StatusBadRequest)
	other := s.Client(tenant, "Other")
	s.Get("/v1/clients/"+s.number(other.ID)+"/policies/1/users", tenant.Key).Want(http.StatusNotFound)
	stranger := s.Tenant("Stranger")
	s.Get(path, stranger.Key).Want(http.StatusForbidden)
	s.Get(users, stranger.Key).Want(http.StatusForbidden)
	s.Exec("UPDATE policies SET archived_at = now() WHERE id = $1", all)
	s.Get(users, tenant.Key).Want(http.StatusNotFound)
}

func TestPolicyStatements(t *testing.T) {
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	client := s.Client(tenant, "Client")
	s.User(tenant, client.ID, v2test.Email(1))
	p := s.addPolicy(client.ID, domain.TenantScope, client.ID.UUID(), true)
	one := "/clients/" + s.number(client.ID) + "/policies"
	v2Path := "/v2/clients/" + client.ID.String() + "/policies"
	measure := func(path string) int {
		s.Exec("UPDATE policies SET counted_until = '-infinity'") // so that its counts are made anew
		return s.Statements.During(func() { s.Get(path, tenant.Key).Want(http.StatusOK) })
	}
	measure(v2Path)
	v1List, v1Users := measure("/v1"+one), measure("/v1"+one+"/1/users?status=signed")
	v2List, v2Users := measure(v2Path), measure(v2Path+"/"+p.String()+"/users?status=signed")
	if v1List > v2List+3 || v1Users > v2Users+3 {
		t.Errorf("v1 takes %d and %d statements, v2 %d and %d", v1List, v1Users, v2List, v2Users)
	}
	s.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at, created_at, updated_at)
		SELECT client_id, gen_random_uuid(), title, scope_type, scope_id, true, now(), now(), now() FROM policies, generate_series(1, 499)`)
	if many := measure("/v1" + one + "?limit=1000"); many != v1List {
		t.Errorf("%d statements for one policy, %d for 500", v1List, many)
	}
}

// TestPoliciesOfImportedScope: a policy that was imported for a collection that is
// gone has a number for it, the same as another one's for that collection.
func TestPoliciesOfImportedScope(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	client := s.Client(tenant, "Client")
	gone := domain.AnyRef{UUID: db.NewID[domain.CollectionKind]()}
	record := func() *domain.PolicyRecord {
		return &domain.PolicyRecord{
			ID: domain.RefTo(db.NewID[domain.PolicyKind]()), Client: domain.Give(domain.RefTo(client.ID)),
			Title: domain.Give("Clean desk"), ScopeType: domain.Give(domain.CollectionScope),
			ScopeID: domain.Give(gone), ScopeDeleted: domain.Give(true),
		}
	}
	for _, batch := range [][]any{{record(), record()}, {record()}} {
		if results, err := records.Policies.Import(t.Context(), s.DB, batch); err != nil || results[0].Refusal != "" {
			t.Fatal(results, err)
		}
	}
	list := s.list("/v1/clients/"+s.number(client.ID)+"/policies", tenant.Key)
	if list.Total != 3 {
		t.Fatalf("%+v", list)
	}
	for _, item := range list.Items {
		if item["scope_id"] != float64(1) || item["audience_user_count"] != float64(0) {
			t.Errorf("%v", item)
		}
	}
	if list := s.list("/v1/clients/"+s.number(client.ID)+"/collections", tenant.Key); list.Total != 0 {
		t.Errorf("%+v", list)
	}
}
