package domain

import (
	"testing"
	"time"
)

// TestChooseTemplate: unseen in the user's language and the least used, else
// the one seen longest ago (decisions 7.5).
func TestChooseTemplate(t *testing.T) {
	a, b, c, d := TemplateID{1}, TemplateID{2}, TemplateID{3}, TemplateID{4}
	day := func(n int) time.Time { return time.Date(2026, 6, n, 0, 0, 0, 0, time.UTC) }
	options := []TemplateOption{{a, English, 5}, {b, English, 2}, {c, English, 2}, {d, Spanish, 0}}
	for name, test := range map[string]struct {
		to   Target
		want TemplateID
	}{
		"the least used, the first of two": {Target{Language: English}, b},
		"not the seen one":                 {Target{Language: English, Seen: map[TemplateID]time.Time{b: day(1)}}, c},
		"unseen before less used":          {Target{Language: English, Seen: map[TemplateID]time.Time{b: day(1), c: day(2)}}, a},
		"all seen: longest ago":            {Target{Language: English, Seen: map[TemplateID]time.Time{a: day(3), b: day(2), c: day(1)}}, c},
		"the user's language":              {Target{Language: Spanish}, d},
		"even if seen":                     {Target{Language: Spanish, Seen: map[TemplateID]time.Time{d: day(1)}}, d},
	} {
		mine := append([]TemplateOption(nil), options...)
		if got, ok := ChooseTemplate(mine, test.to); !ok || got != test.want {
			t.Errorf("%s: %v, %v", name, got[0], ok)
		}
	}
	if _, ok := ChooseTemplate(options, Target{Language: French}); ok {
		t.Error("there is none in French")
	}
	var got []TemplateID
	for range 3 { // users at once are spread over the templates
		id, _ := ChooseTemplate(options, Target{Language: English})
		got = append(got, id)
	}
	if got[0] != b || got[1] != c || got[2] != b {
		t.Errorf("spread over %v", got)
	}
}
