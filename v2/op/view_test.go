package op_test

import (
	"testing"

	"github.com/go-json-experiment/json"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

type (
	part struct {
		Kept  string `json:"kept,omitempty"`
		Later *int   `json:"later" since:"2.2"`
	}
	whole struct {
		Part   part        `json:"part"`
		Parts  []part      `json:"parts"`
		Maybe  *part       `json:"maybe"`
		None   *part       `json:"none"`
		Any    any         `json:"any"`
		At     domain.Time `json:"at"`
		hidden int
	}
	exported struct {
		Shared
		Parts []part `json:"parts"`
	}
	// Shared has a method, which a struct that is made at run time could not promote.
	Shared struct {
		Name  string `json:"name"`
		Plain string `json:"-"`
		Added int    `json:"added" since:"2.4"`
	}
	embedsPart struct{ part }
	unviewable struct {
		Parts map[string]part `json:"parts"`
	}
	requiresLater struct {
		Body struct {
			Name string `json:"name" validate:"filled" since:"2.4"`
		}
	}
	badSince struct {
		Name string `json:"name" since:"3"`
	}
)

func (Shared) BudgetClient() domain.ClientID { return domain.ClientID{} }

// TestView verifies that a release's view of an output lacks its later fields, at every depth, and only these.
func TestView(t *testing.T) {
	seven := 7
	p := part{Kept: "k", Later: &seven}
	nested := exported{Shared: Shared{Added: 1, Name: "n"}, Parts: []part{p}}
	out := &whole{Part: p, Parts: []part{p, {}}, Maybe: &p, Any: p, hidden: 1}
	for release, want := range map[op.Release]string{
		0:       `{"part":{"kept":"k","later":7},"parts":[{"kept":"k","later":7},{"later":null}],"maybe":{"kept":"k","later":7},"none":null,"any":{"kept":"k","later":7},"at":"0001-01-01T00:00:00.000000Z"}`,
		op.V2_2: `{"part":{"kept":"k","later":7},"parts":[{"kept":"k","later":7},{"later":null}],"maybe":{"kept":"k","later":7},"none":null,"any":{"kept":"k","later":7},"at":"0001-01-01T00:00:00.000000Z"}`,
		op.V2_1: `{"part":{"kept":"k"},"parts":[{"kept":"k"},{}],"maybe":{"kept":"k"},"none":null,"any":{"kept":"k"},"at":"0001-01-01T00:00:00.000000Z"}`,
	} {
		if got := encoded(t, release.View(out)); got != want {
			t.Errorf("%v shows\n%s\nnot\n%s", release, got, want)
		}
	}
	if got := encoded(t, op.V2_1.View(nested)); got != `{"name":"n","parts":[{"kept":"k"}]}` {
		t.Errorf("an embedded struct is shown as %s", got)
	}
	if got := op.Latest.View(&nested); got != any(&nested) {
		t.Errorf("the view of what a release has whole is a copy: %T", got)
	}
	if got := op.V2_0.View(nil); got != nil {
		t.Errorf("nothing is shown as %v", got)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// BenchmarkView measures the view of a page of 100 items, and its encoding, in a release that lacks fields and in one
// that has all.
func BenchmarkView(b *testing.B) {
	page := &op.Page[exported]{Data: make([]exported, 100)}
	for i := range page.Data {
		page.Data[i].Parts = []part{{Kept: "k"}}
	}
	for _, release := range []op.Release{op.V2_0, op.V2_4} {
		b.Run(release.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := json.Marshal(release.View(page)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
