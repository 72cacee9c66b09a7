package operator

import (
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
)

func TestReadTemplates(t *testing.T) {
	t.Parallel()
	templates, faults, err := readTemplates([]byte(`[
		{"name": "Reset", "subject": "Reset  now,\n{{target['first_name']}}", "from_address": "{{customer['name']}} <it@domain.com>",
			"html": "<a href=\"{{url}}\">{{\n fake.first_name\n}}</a> {{time.current_year_long()}}", "text": "{{\nurl\n}} {{\tcompany }}", "deception_score": 3,
			"indicators": {"behavior": {"fear": 1, "greed": 0}, "sender": {"internal": 2}}},
		{"name": "Season", "subject": "s", "from_address": "a@b.c", "html": "<a href=\"{{url}}\">{{time.current_season()}} {{x y}}</a>", "text": "t", "deception_score": 1},
		{"name": "Reset", "subject": "s", "from_address": "a@b.c", "html": "<a href=\"{{url}}\"></a>", "text": "t", "deception_score": 1, "indicators": {"x": {"fear": 1}}},
		{"name": "No link", "subject": "s", "from_address": "a@b.c", "html": "<p>x</p>", "text": "t", "deception_score": 1},
		{"name": "Score", "subject": "s", "from_address": "a@b.c", "html": "<a href=\"{{url}}\"></a>", "text": "t", "deception_score": 7},
		{"name": "Sender", "subject": "s", "from_address": "nobody", "html": "<a href=\"{{url}}\"></a>", "text": "t", "deception_score": 1},
		{"name": "", "subject": "s", "from_address": "a@b.c", "html": "<a href=\"{{url}}\"></a>", "text": "t", "deception_score": 1},
		{"name": "Empty", "subject": " ", "from_address": "a@b.c", "html": "<a href=\"{{url}}\"></a>", "text": "t", "deception_score": 1},
		{"name": "Sign", "subject": "s", "from_address": "a@b.c", "html": "<a href=\"{{url}}\"></a>", "text": "t", "deception_score": 1, "indicators": {"x": {"luck": 1}}},
		{"name": "Silent", "subject": "s", "from_address": "a@b.c", "html": "<a href=\"{{url}}\"></a>", "text": "t", "deception_score": 1, "indicators": {"x": {"fear": 0}}},
		{"name": "Two words", "subject": "s", "from_address": "{{target['first_name']}}@b.c", "html": "<a href=\"{{url}}\"></a>", "text": "t", "deception_score": 1, "indicators": {"x": {"fear": 1}}},
		{"name": "Hidden", "subject": "s", "from_address": "a@b.c", "html": "<!--[if mso]><a href=\"{{url}}\"></a><![endif]-->", "text": "t", "deception_score": 1, "indicators": {"x": {"fear": 1}}},
		{"name": "Open", "subject": "s", "from_address": "a@b.c", "html": "<a href={{url}}></a> {{ url", "text": "t", "deception_score": 1, "indicators": {"x": {"fear": 1}}},
		{"name": "Swallowed", "subject": "s", "from_address": "a@b.c", "html": "<a href={{url}}></a>", "text": "{{ url, {{url}}", "deception_score": 1, "indicators": {"x": {"fear": 1}}},
		{"name": "`+strings.Repeat("é", 201)+`", "subject": "s", "from_address": "a@b.c", "html": "<a href={{url}}></a>", "text": "t", "deception_score": 1},
		{"name": "Wordy", "subject": "`+strings.Repeat("é", 501)+`", "from_address": "a@b.c", "html": "<a href={{url}}></a>", "text": "t", "deception_score": 1},
		7
	]`), domain.Spanish, "general")
	if err != nil || len(templates) != 1 {
		t.Fatalf("%d templates: %v", len(templates), err)
	}
	m := templates[0]
	if m.Subject != "Reset now, {{first_name}}" || m.From != "{{company}} <it@domain.com>" || m.Language != domain.Spanish || m.Category != "general" || m.Difficulty != 3 {
		t.Errorf("read %+v", m)
	}
	if m.HTML != `<a href="{{link}}">Jordan</a> {{year}}` || m.Text != "{{link}} {{company}}" || !slices.Equal(m.Indicators, []domain.Indicator{domain.Fear, domain.FromColleagues}) {
		t.Errorf("read %+v", m)
	}
	want := []string{
		`entry 2 ("Season"): holds placeholders that are not known: time.current_season(), x y`, `entry 3 ("Reset"): has the name of entry 1`,
		`entry 4 ("No link"): has no link`, `entry 5 ("Score"): deception_score 7`, `entry 6 ("Sender"): the sender is not an address`, `entry 7 (""): needs a name`,
		`entry 8 ("Empty"): needs a subject`, `entry 9 ("Sign"): the indicator "luck"`, `entry 10 ("Silent"): has no indicators`,
		`entry 11 ("Two words"): the sender's address holds a placeholder`, `entry 12 ("Hidden"): has no link`,
		`entry 13 ("Open"): holds placeholders that are not known: {{ without its }}`, `entry 14 ("Swallowed"): holds placeholders that are not known: url, {{url`,
		`entry 15 ("éé`, `entry 16 ("Wordy"): has a subject of more than 500 characters`, `entry 17`,
	}
	if len(faults) != len(want) {
		t.Fatalf("%d faults: %v", len(faults), faults)
	}
	for i, fault := range faults {
		if !strings.HasPrefix(fault.Error(), want[i]) {
			t.Errorf("%s, want %s", fault, want[i])
		}
	}
	if _, _, err := readTemplates([]byte(`{}`), domain.English, "general"); err == nil {
		t.Error("an object was read as a list")
	}
}
