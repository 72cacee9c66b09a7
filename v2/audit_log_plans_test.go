//go:build slow

package v2_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// TestPagingPlansOfAuditLog verifies that a page of the audit log is found in the order of an index, from the place of the
// cursor on, whatever the filter and the key's access: of the partner, of one operation, of each client, of a key. If few
// entries match, they may be sorted.
func TestPagingPlansOfAuditLog(t *testing.T) {
	h, set, queries := newTraced(t)
	tenant, other := h.AddPartner("Large"), h.AddPartner("Other")
	rare, one := h.AddClient(tenant, "Rare").ID, h.AddClient(tenant, "One").ID
	h.AddClient(tenant, "Many")
	for i := range 12 {
		h.AddClient(other, fmt.Sprint("Theirs ", i))
	}
	subset := h.AddKey(tenant, bothScopes, []domain.ClientID{rare, one})
	h.AddKey(tenant, bothScopes, nil)
	h.Exec(`INSERT INTO audit_entries (at, partner_id, key_id, key_prefix, operation, method, path, request_id, client_id)
		SELECT $1::timestamptz - n % 3000 * interval '1 hour', k.partner_id, k.id, k.prefix,
			CASE WHEN n % 1000 = 0 THEN 'webhooks.test' ELSE 'users.update' END, 'PATCH', '/v2/users', 'r',
			CASE WHEN c.name <> 'Rare' OR n % 100 = 0 THEN c.id END
		FROM generate_series(1, 6000) AS n, api_keys AS k JOIN clients AS c USING (partner_id)`, h.Clock.Now())
	h.Exec("VACUUM ANALYZE audit_entries")
	prefix := domain.CallerFrom(h.As(subset)).Prefix
	ofPartner, ofClient, ofKey := []string{"audit_entries_of_partner"}, []string{"audit_entries_of_client"}, []string{"audit_entries_of_key"}
	all, some := tenant.Key, subset
	for _, test := range []struct {
		key, query string
		indexes    []string
	}{
		{all, "", ofPartner},
		{all, "since=2026-05-01T00:00:00Z&until=2026-06-01T00:00:00Z", ofPartner},
		{all, "operation=users.update", []string{"audit_entries_of_operation", "audit_entries_of_partner"}},
		{all, "operation=webhooks.test", []string{"audit_entries_of_operation"}},
		{all, "client_id=" + rare.String(), ofClient},
		{all, "client_id=" + rare.String() + "&operation=webhooks.test&key=" + prefix, ofClient},
		{all, "key=" + prefix, ofKey},
		{some, "", slices.Concat(ofKey, ofClient)},
		{some, "operation=users.update", slices.Concat(ofKey, ofClient)},
		{some, "client_id=" + one.String(), ofClient},
		{some, "key=" + prefix, ofKey},
		{some, "key=" + domain.CallerFrom(tenant.Ctx).Prefix, ofClient},
	} {
		for _, sort := range domain.AuditSort("").Values() {
			table := &pagedTable{h: h, tenant: tenant, op: api.ListAuditLog, set: set, shown: []string{"id"}}
			l := pagedList{key: test.key, sort: sort}
			l.query, _ = url.ParseQuery(test.query)
			first, page := queries.plan(t, table, l, op.Paging{Rows: 10})
			next, _ := queries.plan(t, table, l, op.Paging{Rows: 10, Cursor: page.end})
			if len(page.Data) == 0 {
				t.Errorf("%q has no entries", test.query)
			}
			for i, plan := range []queryPlan{first, next} {
				reads := 0
				for _, n := range plan.nodes() {
					if strings.HasPrefix(n.Index, "audit_entries_") && n.Index != "audit_entries_pkey" {
						reads++
						few := strings.Contains(test.query, "webhooks.test")
						inOrder := strings.HasPrefix(n.Node, "Index") || few
						if !slices.Contains(test.indexes, n.Index) || !inOrder || i == 1 && !strings.Contains(n.Condition, "ROW(") {
							t.Errorf("%q by %s, page %d, is read by\n%s", test.query, sort, i+1, plan)
						}
					}
				}
				if reads == 0 {
					t.Errorf("%q by %s, page %d, reads no index:\n%s", test.query, sort, i+1, plan)
				}
			}
		}
	}
}
