//go:build slow

package v2_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestUsageModel compares random lists of usage, in pages of random sizes, with a naive model. Most changes are made as
// release 1.0 makes them, which knows nothing of the days. Old rows are deleted meanwhile.
func TestUsageModel(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	dice := rand.New(rand.NewPCG(7, 45))
	m := &usageModel{}
	var ids []domain.ClientID
	today := func() domain.Date { return domain.DateOf(h.Clock.Now()) }
	for n := range 450 {
		if n%60 == 0 {
			name := fmt.Sprint("Client ", len(ids))
			ids, m.names, m.counts = append(ids, h.AddClient(tenant, name).ID), append(m.names, name), append(m.counts, map[domain.Date][2]int{})
			m.set(len(ids)-1, today(), 0)
		}
		for range dice.IntN(4) {
			h.Clock.Advance(time.Hour)
			client, users := dice.IntN(len(ids)), dice.IntN(9)
			h.Exec("UPDATE clients SET users_active = $2, updated_at = greatest(updated_at, $3) WHERE id = $1", ids[client], users, h.Clock.Now())
			m.set(client, today(), users)
		}
		h.Clock.Set(today().AddDays(1).Time().Add(time.Hour))
		m.pass(today())
	}
	h.Must(h.DB.DropOld(t.Context()))
	if kept := h.Number("SELECT count(*) FROM active_user_days WHERE day < $1", today().AddDays(-400).Time()); kept > len(ids) {
		t.Errorf("%d rows of %d clients are older than 400 days", kept, len(ids))
	}

	for range 60 {
		interval := []domain.UsageInterval{domain.MonthlyUsage, domain.DailyUsage}[dice.IntN(2)]
		first := today().AddDays(-dice.IntN(440))
		last := first.AddDays(dice.IntN(400))
		query := url.Values{"interval": {string(interval)}, "start_on": {first.String()}, "end_on": {last.String()}, "limit": {fmt.Sprint(1 + dice.IntN(500))}}
		if interval == domain.DailyUsage && dice.IntN(2) == 0 {
			query.Set("limit", "500")
		}
		if last.After(today()) {
			last = today()
		}
		want := m.list(first, last, today().AddDays(-399), interval)
		if got := usageOf(h, tenant.Key, query.Encode()); !slices.Equal(got, want) {
			t.Fatalf("%s:\ngot  %q\nwant %q", query.Encode(), got, want)
		}
	}
}
