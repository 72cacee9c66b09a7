package cells_test

import (
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/cells"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

// TestFixCell: a database is of one cell, for good. What was there before is of the first.
func TestFixCell(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	newKey := func(begins string) string {
		key, err := w.CreateKey(t.Context(), db.NewKey{Partner: w.Partner, Name: "x", Scopes: []domain.Scope{domain.Read}})
		w.Must(err)
		if !strings.HasPrefix(key, begins) {
			t.Errorf("the new key is %s", key)
		}
		return key
	}
	elsewhere := func(key string) string {
		cells, err := cells.Read(t.Context(), w.DB)
		w.Must(err)
		if cells == nil {
			return "nil"
		}
		return cells.Elsewhere(key, db.KeyDigest(key))
	}
	fix := func(c, want domain.Cell) {
		is, err := cells.Fix(t.Context(), w.DB, c)
		if err != nil || is != want {
			t.Errorf("after %v it is %v (%v), not %v", c, is, err, want)
		}
	}
	named := func(number int) string {
		key, err := domain.NewAPIKey(domain.Cell{Number: number, Count: 4})
		w.Must(err)
		return key
	}

	alone, first := domain.Cell{Count: 1}, domain.Cell{Count: 4}
	fix(alone, alone)
	stray := named(2) // as digits of a key of before may be
	w.Exec("UPDATE api_keys SET prefix = $1, digest = $2 WHERE digest = $3",
		domain.APIKeyPrefix(stray), db.KeyDigest(stray), db.KeyDigest(newKey("papi_00")))
	if got := elsewhere(named(3)); got != "nil" {
		t.Errorf("alone, a key is of %s", got)
	}
	fix(domain.Cell{Number: 2, Count: 4}, alone) // it has a partner
	fix(first, first)
	for _, c := range []domain.Cell{alone, {Number: 2, Count: 4}, {Number: 0, Count: 2}} {
		fix(c, first)
	}
	for key, want := range map[string]string{
		newKey("papi_00"): "", named(3): "03", named(2): "02", stray: "", "pk_demo_all": "",
	} {
		if got := elsewhere(key); got != want {
			t.Errorf("%s is of %q, not %q", key, got, want)
		}
	}
	if strays, err := cells.StrayKeys(t.Context(), w.DB, first); err != nil || len(strays) != 1 || strays[0].Prefix != stray[:13] {
		t.Errorf("strays: %v, %v", strays, err)
	}

	other := worldtest.New(t)
	other.Exec("DELETE FROM partners")
	third := domain.Cell{Number: 2, Count: 4}
	if is, err := cells.Fix(t.Context(), other.DB, third); err != nil || is != third {
		t.Errorf("an empty database is %v (%v)", is, err)
	}
	w = other
	w.Partner, _ = w.InsertPartner(t.Context(), "Acme")
	for key, want := range map[string]string{newKey("papi_02"): "", stray: "", named(0): "00", "pk_demo_all": "00"} {
		if got := elsewhere(key); got != want {
			t.Errorf("for the third, %s is of %q, not %q", key, got, want)
		}
	}
}
