package v1compat

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/idmap"
)

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
	got, err := translators["policies"].Expect(wrong, none)
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
