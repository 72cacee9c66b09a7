package v2_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// TestListsAreWalked verifies that every list, in every order, has three pages that follow one another: together they
// have the rows of one large page, each once. A new list is among them by its declaration.
func TestListsAreWalked(t *testing.T) {
	t.Parallel()
	w := crowd(t)
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		if !isList(o) {
			return
		}
		limit := 250 // of some 600 rows
		if o.Meta().ID == "frameworks.list" {
			limit = (len(domain.Frameworks) + 2) / 3
		}
		for _, sort := range sortsOf(o) {
			w.walkPages(t, pathOf(t, o, w.ids(), "sort="+sort), limit)
		}
	})
}

// sortsOf are the sorts of a list; the empty one for a list without.
func sortsOf(o op.Operation) []string {
	for _, p := range o.Input().Query {
		if p.Name == "sort" {
			return reflect.Zero(p.Type).Interface().(rule.Enum).Values()
		}
	}
	return []string{""}
}

// walkPages reads a list of three pages.
func (w *world) walkPages(t *testing.T, path string, limit int) {
	t.Helper()
	var walked []string
	for cursor, n := "", 1; n <= 3; n++ {
		r := w.Get(fmt.Sprintf("%s&limit=%d&cursor=%s", path, limit, cursor), w.tenant.Key).Want(200)
		page := rowTexts(t, r)
		walked = append(walked, page...)
		if more := r.Field("page.has_more") == true; more != (n < 3) || more && len(page) != limit || len(page) == 0 {
			t.Fatalf("%s: page %d of %d rows has %d, has_more is %t", path, n, limit, len(page), more)
		}
		cursor, _ = r.Field("page.next_cursor").(string)
	}
	once := slices.Compact(slices.Sorted(slices.Values(walked)))
	if len(once) != len(walked) {
		t.Errorf("%s: %d of %d rows came twice, or rows look alike: let crowd tell them apart", path, len(walked)-len(once), len(walked))
	}
	whole := rowTexts(t, w.Get(path+"&limit=500", w.tenant.Key).Want(200))
	if first := walked[:min(len(walked), 500)]; !slices.Equal(first, whole) {
		t.Errorf("%s: the pages have not the rows of one large page", path)
	}
}

// rowTexts are the rows of a page, each as its JSON.
func rowTexts(t *testing.T, r v2test.Response) (rows []string) {
	t.Helper()
	for _, row := range r.Field("data").([]any) {
		rows = append(rows, text(t, row.(map[string]any)))
	}
	return rows
}

// TestStalePage verifies that a page whose summaries are refreshed by the read shows what it shows afterwards: a refresh
// takes nothing away that the list reads.
func TestStalePage(t *testing.T) {
	t.Parallel()
	w := crowd(t)
	w.Exec("UPDATE clients SET industry = 'Retail', external_id = 'CRM-' || name, framework_ids = '{hipaa}' WHERE name LIKE 'Client %'")
	for _, query := range []string{"limit=50", "limit=50&q=client&sort=name", "limit=50&updated_since=2020-01-01T00:00:00Z"} {
		w.Clock.Advance(time.Hour)
		stale := w.Get("/v2/clients?"+query, w.tenant.Key).Want(200)
		if fresh := w.Get("/v2/clients?"+query, w.tenant.Key).Want(200); string(stale.Body) != string(fresh.Body) {
			t.Errorf("%s: got %.2000s\nwant %.2000s", query, stale.Body, fresh.Body)
		}
	}
}
