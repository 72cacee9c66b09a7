package v1compat

import (
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/records"
	"partnerapi/domain"
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

// TestPoliciesOfImportedScope: a policy that was imported for a collection that is
// gone has a number for it, the same as another one's for that collection.
func TestPoliciesOfImportedScope(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
	client := s.AddClient(tenant, "Client")
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
