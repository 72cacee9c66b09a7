package v1compat

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/v2test"
)

// TestNumbersUnderCreators: 50 creators at once through both versions, some of
// whose clients are deleted again while others are made. Each client has one
// number and each number one client, and none is given twice (decisions 1.4).
func TestNumbersUnderCreators(t *testing.T) {
	t.Parallel()
	const creators, each = 50, 4
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	// A key may have 16 requests in progress (v2/op/ginop): 13 creators share one.
	keys := []string{tenant.Key}
	for len(keys) < 4 {
		keys = append(keys, s.NewKey(tenant, []domain.Scope{domain.Read, domain.Write}, nil))
	}
	var mu sync.Mutex
	given := map[int64]string{} // by number, the name of the client that v1 said has it
	var group sync.WaitGroup
	for creator := range creators {
		key := keys[creator%len(keys)]
		group.Go(func() {
			for i := range each {
				name := fmt.Sprintf("client %d of %d", i, creator)
				var made v2test.Response
				if (creator+i)%2 == 0 {
					made = s.Do("POST", "/v2/clients", key, map[string]string{"name": name})
				} else {
					made = s.Do("POST", "/v1/clients", key, map[string]string{"company_name": name})
				}
				if made.Status != http.StatusCreated {
					t.Errorf("%s: %d %s", name, made.Status, made.Body)
					return
				}
				n := s.numberOfCreated(t, made)
				mu.Lock()
				if before := given[n]; before != "" {
					t.Errorf("%d is the number of %s and of %s", n, before, name)
				}
				given[n] = name
				mu.Unlock()
				if i == 1 {
					s.deleteClient(t, name)
				}
			}
		})
	}
	group.Wait()
	if len(given) != creators*each {
		t.Fatalf("%d numbers for %d clients", len(given), creators*each)
	}
	s.compareNumbers(t, tenant, given, creators*(each-1))
}

// numberOfCreated is the number that v1 shows, or that the registry has for what
// v2 shows.
func (s *service) numberOfCreated(t *testing.T, r v2test.Response) int64 {
	switch id := r.Field("id").(type) {
	case float64:
		return int64(id)
	case string:
		parsed, err := domain.ParseID[domain.ClientKind](id)
		if err != nil {
			t.Error(err)
		}
		key := idmap.IDKey{Kind: idmap.Client, ID: idmap.UUID(parsed)}
		found, err := s.registry.Numbers(t.Context(), []idmap.IDKey{key})
		if err != nil {
			t.Error(err)
		}
		return found[key]
	}
	t.Errorf("no id in %s", r.Body)
	return 0
}

// deleteClient deletes a client with what creating one makes.
func (s *service) deleteClient(t *testing.T, name string) {
	for _, table := range []string{"program_courses", "groups", "events", "risk_history"} {
		if _, err := s.DB.SQL().ExecContext(t.Context(), `DELETE FROM `+table+` WHERE client_id = (SELECT id FROM clients WHERE name = $1)`, name); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.DB.SQL().ExecContext(t.Context(), `DELETE FROM clients WHERE name = $1`, name); err != nil {
		t.Error(err)
	}
}

// compareNumbers reads all clients through both versions.
func (s *service) compareNumbers(t *testing.T, tenant v2test.Tenant, given map[int64]string, alive int) {
	t.Helper()
	shown := map[string]int64{}
	for offset := 0; ; {
		p := s.list(fmt.Sprintf("/v1/clients?limit=50&offset=%d", offset), tenant.Key)
		for _, item := range p.Items {
			n := int64(item["id"].(float64))
			if name := item["client_name"].(string); given[n] != name {
				t.Errorf("v1 shows %d as %s, which is %s", n, name, given[n])
			} else {
				shown[name] = n
			}
		}
		if offset += len(p.Items); offset >= p.Total {
			break
		}
	}
	if len(shown) != alive {
		t.Errorf("v1 shows %d clients, not %d", len(shown), alive)
	}
	for _, item := range s.Get("/v2/clients?limit=500", tenant.Key).Want(200).Field("data").([]any) {
		object := item.(map[string]any)
		id, err := domain.ParseID[domain.ClientKind](object["id"].(string))
		if err != nil {
			t.Fatal(err)
		}
		if want := shown[object["name"].(string)]; s.number(id) != fmt.Sprint(want) {
			t.Errorf("%s has number %s, v1 shows %d", object["name"], s.number(id), want)
		}
	}
	for n, name := range given {
		if want := map[bool]int{true: 200, false: 403}[shown[name] != 0]; n%7 == 0 || want == 403 {
			s.Get(fmt.Sprintf("/v1/clients/%d/users", n), tenant.Key).Want(want)
		}
	}
}
