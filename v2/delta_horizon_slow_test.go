//go:build slow

package v2_test

import (
	"slices"
	"testing"
	"time"

	"partnerapi/db/pg"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// TestDeltaHorizon verifies, of every list with updated_since, that it leaves what changed after its horizon to the next
// reading, also on a later page that is read when the change in progress has ended; and that the next reading, from the
// horizon on, has exactly the other rows.
func TestDeltaHorizon(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited})
	e := v2test.NewExamples(h, "examples", false)
	d := newDemo(t, h, e)
	m := filterMatrix{Harness: h, key: e.Key, at: d.of("user_id", d.user)}
	m.at["collection_id"] = m.longest(t, "/v2/clients/"+d.client+"/collections", "/members")
	m.at["policy_id"] = m.partlySigned(t, "/v2/clients/"+d.client+"/policies")
	demoLists(h, d)
	m.rows(t, "/v2/clients?sort=risk_score") // refreshes every summary
	spreadChanges(h)

	now := h.Clock.Now()
	horizon := now.Add(-time.Minute)
	change, err := h.DB.SQL().BeginTx(t.Context(), nil) // it has a mark, but no limit
	if err == nil {
		_, err = change.Exec("SELECT pg_advisory_xact_lock_shared($1, $2)", pg.MarkClass, int32(uint32(horizon.UnixMilli())))
	}
	if err != nil {
		t.Fatal(err)
	}

	type reading struct {
		path, next string
		rows       []string
	}
	var readings []reading
	for _, o := range h.API.Set.All() {
		if !slices.ContainsFunc(o.Input().Query, func(p op.Param) bool { return p.Name == "updated_since" }) {
			continue
		}
		path := pathOf(t, o, m.at)
		r := reading{path: path, rows: m.rows(t, path+sign(path)+"updated_since=1970-01-01T00:00:00Z")}
		page := h.Get(path+sign(path)+"updated_since=1970-01-01T00:00:00Z&limit=1", e.Key).Want(200)
		r.next, _ = page.Field("page.next_cursor").(string)
		readings = append(readings, r)
	}
	if err := change.Rollback(); err != nil {
		t.Fatal(err)
	}
	left := 0
	for _, r := range readings {
		path := r.path + sign(r.path)
		since := func(at time.Time) []string { return m.rows(t, path+"updated_since="+at.Format(time.RFC3339Nano)) }
		whole, next := since(time.Unix(0, 0).UTC()), since(horizon)
		left += len(next)
		if both := append(slices.Clone(r.rows), next...); !slices.Equal(slices.Sorted(slices.Values(both)), slices.Sorted(slices.Values(whole))) {
			t.Errorf("%s: %d rows up to the horizon and %d after it are not the %d rows of the list", r.path, len(r.rows), len(next), len(whole))
		}
		if len(r.rows) == 0 {
			continue
		}
		var later []string
		for cursor := r.next; cursor != ""; {
			page := h.Get(path+"updated_since=1970-01-01T00:00:00Z&limit=500&cursor="+cursor, e.Key).Want(200)
			later = append(later, rowTexts(t, page)...)
			cursor, _ = page.Field("page.next_cursor").(string)
		}
		if !slices.Equal(later, r.rows[1:]) {
			t.Errorf("%s: the pages after the first have %d rows, want %d", r.path, len(later), len(r.rows)-1)
		}
	}
	if len(readings) < 16 || left == 0 {
		t.Errorf("read %d lists, with %d rows after the horizon", len(readings), left)
	}
}
