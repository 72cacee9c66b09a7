package v1compat

import (
	"fmt"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/v2test"
)

// TestEmptyLists: a list of nothing is written as [], never as null.
func TestEmptyLists(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	client := s.Client(tenant, "Client").ID
	user := db.NewID[domain.UserKind]()
	s.insertUser(client, user, domain.Inactive, v2test.Noon)
	collection := s.Collection(client, "Nobody's")
	policy := s.addPolicy(client, domain.CollectionScope, collection.UUID(), true)
	bare := s.Client(tenant, "Bare").ID
	in, its := "/v1/clients/"+s.number(bare), "/v1/clients/"+s.number(client)
	of := "/v1/users/" + user.UUID()
	lists := map[string]struct {
		path  string
		limit int
	}{
		"clients":            {"/v1/clients?ids=", 20},
		"users":              {its + "/users", 20},
		"collections":        {in + "/collections", 200},
		"collection-members": {its + "/collections/" + s.numberOf(idmap.Collection, idmap.UUID(collection)) + "/members", 200},
		"policies":           {in + "/policies", 200},
		"policy-users":       {its + "/policies/" + s.numberOf(idmap.Policy, idmap.UUID(policy)) + "/users", 200},
		"exposures":          {its + "/darkweb/exposures", 200},
		"training":           {of + "/training", 20},
		"phishing":           {of + "/phishing", 20},
		"sentemails":         {"/v1/sentemails", 100},
		"reports":            {in + "/reports", 20},
	}
	for _, r := range s.facade.routes {
		if !strings.HasPrefix(r.output.Name(), "Paging[") || r.ID == "download-report" { // of one item
			continue
		}
		list, ok := lists[r.ID]
		if !ok {
			t.Errorf("no empty list of %s", r.ID)
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			var body any
			if r.Method == "POST" {
				body = fields{"user_infima_id": user.UUID()}
			}
			got := s.Do(r.Method, list.path, tenant.Key, body)
			if want := fmt.Sprintf(`{"items":[],"limit":%d,"offset":0,"total":0}`, list.limit); got.Status != 200 || string(got.Body) != want {
				t.Errorf("%d %s", got.Status, got.Body)
			}
		})
	}
	if got, want := string(s.Get("/v1/partner", tenant.Key).Body), `"admins":[]`; !strings.Contains(got, want) {
		t.Errorf("a partner without admins: %s", got)
	}
}
