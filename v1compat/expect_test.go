package v1compat

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/idmap"
	"partnerapi/v2/op"
)

// TestGivenUp: every route of v1 has a successor, and v2 has all that they take and answer
// but offsets and totals, ids of mails, and members that always say the same. (Numbers are
// converted.)
func TestGivenUp(t *testing.T) {
	t.Parallel()
	want := []string{
		"add-collection-member status", "remove-collection-member status", "update-user status", // fixed texts
		"download-report limit", "download-report offset", "download-report total", // of a page of one
		"reports download_link", // never there in a list
		"sentemails message_infima_id",
	}
	var got []string
	table, _ := writtenPages(t)
	for _, r := range Declare(Config{}).routes {
		if r.Successor == nil && !r.Additive {
			t.Errorf("%s has no successor", r.ID)
		}
		rows := table[headingOf(r)]
		for _, row := range slices.Concat(rows.request, rows.answer) {
			if name := r.ID + " " + row.v1; strings.HasPrefix(row.how, "given up") && row != offset && !slices.Contains(got, name) {
				got = append(got, name)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("given up: %v, not %v", got, want)
	}
	for _, row := range pageAnswer {
		if strings.HasPrefix(row.how, "given up") && !slices.Contains([]string{"limit", "offset", "total"}, row.v1) {
			t.Errorf("%s of pages is given up", row.v1)
		}
	}
}

// TestExpect: what an object of v2 lacks is said, as is a value of another type; an object
// without a number has none in v1. The links of answers have whole objects translated.
func TestExpect(t *testing.T) {
	t.Parallel()
	translators := map[string]*Translator{}
	for _, r := range Declare(Config{}).Readers() {
		translators[r.ID] = r
	}
	none := func([]idmap.IDKey) (map[idmap.IDKey]int64, error) { return nil, nil }
	wrong := []jsontext.Value{
		jsontext.Value(`{"id":"pol_01jxeqg1m4e0088h0088h0088h","scope_type":"user_container","scope_id":"grp_01jxeqg1m4e0088h0088h0088h","version":"1"}`),
		jsontext.Value(`{"id":"pol_01jxeqg1m4e0088h0088h0088h","scope_id":"grp_01jxeqg1m4e0088h0088h0088h","version":1}`),
	}
	got, err := translators["policies"].Expect(wrong, op.Latest, none)
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Item != nil || got[0].Faults["version"] == "" || got[0].Faults["title"] != "is missing" {
		t.Errorf("a text for an integer: %s %v", got[0].Item, got[0].Faults)
	}
	var scope struct {
		ScopeID int `json:"scope_id"`
	}
	if err := json.Unmarshal(got[1].Item, &scope); err != nil || scope.ScopeID != NoNumber {
		t.Errorf("a group without a number: %s %v", got[1].Item, err)
	}
	if got[1].Faults["renewal_period_days"] != "is missing" {
		t.Errorf("faults %v", got[1].Faults)
	}
}
