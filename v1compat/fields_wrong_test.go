package v1compat

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/idmap"
	v2 "partnerapi/v2"
)

// made is what a made-up translator makes of madeUp.
type made struct {
	Same    string                       `json:"same"`
	Other   int                          `json:"other"`
	Number  idmap.Ref[domain.ClientKind] `json:"number"`
	User    UUID[domain.UserKind]        `json:"user"`
	At      Time                         `json:"at"`
	Empty   string                       `json:"empty"`
	Left    *int                         `json:"left,omitempty"`
	Role    AdminRole                    `json:"role"`
	There   bool                         `json:"there"`
	Initial string                       `json:"initial"`
	Sum     int                          `json:"sum"`
	Rate    float64                      `json:"rate"`
	Fixed   string                       `json:"fixed"`
	Parts   []madePart                   `json:"parts"`
	Extra   map[string]int               `json:"extra"`
}

type madePart struct {
	Title string `json:"title"`
}

// madeUp is what a made-up operation of v2 shows.
type madeUp struct {
	Same  string           `json:"same"`
	Count int              `json:"count"`
	ID    domain.ClientID  `json:"id"`
	User  domain.UserID    `json:"user"`
	At    domain.Time      `json:"at"`
	Text  *string          `json:"text"`
	Left  *int             `json:"left"`
	Role  domain.AdminRole `json:"role"`
	Seen  *domain.Time     `json:"seen"`
	Name  string           `json:"name"`
	A     int              `json:"a"`
	B     int              `json:"b"`
	Parts []madeUpPart     `json:"parts"`

	Rate float64 `json:"-"`
}

type madeUpPart struct {
	Label string `json:"label"`
}

func fromMadeUp(in any) any {
	v := in.(*madeUp)
	out := &made{
		Same: v.Same, Other: v.Count, Number: idmap.RefTo(v.ID), User: uuidOf(v.User), At: at(v.At),
		Empty: orEmpty(v.Text), Left: v.Left, Role: toAdmin(v2.Admin{Role: v.Role}).Role, There: v.Seen != nil,
		Initial: v.Name[:min(1, len(v.Name))], Sum: v.A + v.B, Rate: v.Rate, Fixed: "fixed",
		Extra: map[string]int{"surplus": v.A},
	}
	for _, part := range v.Parts {
		out.Parts = append(out.Parts, madePart{part.Label})
	}
	return out
}

// madeRows are right of fromMadeUp.
var madeRows = []fieldRow{
	{"same", "same", unchanged},
	{"other", "count", renamed},
	{"number", "id", aNumber("cli")},
	{"user", "user", aUUID("usr")},
	{"at", "at", wholeSeconds},
	{"empty", "text", emptyText},
	{"left", "left", leftOut},
	{"role", "role", "converted: `Administrator` for `admin`, `owner`; `User` for `viewer`"},
	{"there", "seen", presence},
	{"initial", "name", "computed: its first letter"},
	{"sum", "a, b", "computed: a and b together"},
	{"rate", "", "given up: v2 has none"},
	{"fixed", "", fixedText},
	{"parts", "parts", unchanged},
	{"parts[].title", "parts[].label", renamed},
	{"extra", "", "given up: a part that the type does not show"},
	{"extra.surplus", "a", renamed},
}

// TestWrongRows: of a made-up translator that does one thing of each kind, a table that is
// right has no faults, and each row that is wrong, or missing, is named.
func TestWrongRows(t *testing.T) {
	t.Parallel()
	shown, item := reflect.TypeFor[madeUp](), reflect.TypeFor[made]()
	learned := learnAnswer(t, shown, item, fromMadeUp)
	faults := func(rows []fieldRow) []string {
		return answerFaults(rows, learned, item, jsonPaths(shown), nil)
	}
	if found := faults(madeRows); len(found) > 0 {
		t.Errorf("the right table has faults: %q", found)
	}
	for i := range madeRows {
		if found := faults(slices.Delete(slices.Clone(madeRows), i, i+1)); len(found) == 0 {
			t.Errorf("nothing misses %s", madeRows[i].v1)
		}
	}
	for _, wrong := range []fieldRow{
		{"same", "same", renamed},
		{"same", "same", "new"},
		{"same", "count", renamed},
		{"other", "count", "converted: in some way"},
		{"other", "count", emptyText},
		{"number", "id", unchanged},
		{"number", "id", aNumber("usr")},
		{"number", "id", aUUID("cli")},
		{"number", "id", "converted: a number as text in v1, an id `cli_…` in v2"},
		{"user", "user", aNumber("usr")},
		{"user", "user", renamed},
		{"at", "at", unchanged},
		{"empty", "text", renamed},
		{"empty", "text", leftOut},
		{"left", "left", unchanged},
		{"left", "left", emptyText},
		{"role", "role", unchanged},
		{"role", "role", "converted: `Administrator` for `admin`, `owner`, `viewer`"},
		{"role", "role", "converted: `Administrator` for `admin`; `User` for `viewer`"},
		{"there", "seen", renamed},
		{"initial", "name", renamed},
		{"initial", "", "given up: v2 has none"},
		{"initial", "name", "computed"},
		{"sum", "a", "computed: from a"},
		{"sum", "a", renamed},
		{"rate", "a", "computed: from a"},
		{"rate", "", "given up"},
		{"rate", "", "computed: somehow"},
		{"fixed", "name", renamed},
		{"parts", "", "given up: v2 has none"},
		{"parts[].title", "parts", renamed},
		{"extra.surplus", "b", renamed},
	} {
		rows := slices.Clone(madeRows)
		i := slices.IndexFunc(rows, func(r fieldRow) bool { return r.v1 == wrong.v1 })
		rows[i] = wrong
		if found := faults(rows); !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, wrong.v1+" ") }) {
			t.Errorf("%+v is not found: %q", wrong, found)
		}
	}
}
