package operator

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"partnerapi/cmd/internal/cli"
	"partnerapi/domain"
)

const aTemplate = `[{"name": "Parcel", "subject": "Your parcel", "from_address": "post@example.com", "deception_score": 2,
	"html": "<a href=\"{{url}}\">Track it</a>", "text": "{{url}}", "indicators": {"sender": {"internal": 2}}}]`

// TestCatalogue: what one cell's catalogue has is in the other one's with its ids, however
// often it is imported; wrong lines are reported by their numbers and keep no others.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	from, to := newConsole(t), newConsole(t)
	from.must("templates", "import", "--language=en", "--category=parcels", fileOf(t, aTemplate))
	from.says([]string{"breaches", "import", "../../../docs/operate/import-example-breaches.json"}, "1 added")
	lines := from.must("catalogue", "export")

	wrong := "none\n" + `{"kind": "planet", "row": {}}` + "\n" + `{"kind": "breach", "row": {"name": null}}` + "\n"
	to.refused(false, []string{"catalogue", "import", fileOf(t, wrong+lines)}, "line 1: ", "line 2: the kind \"planet\"", "line 3: ", "3 lines of")
	for _, query := range []string{
		"SELECT coalesce(json_agg(t ORDER BY id), '[]')::text FROM phishing_templates AS t WHERE NOT own",
		"SELECT coalesce(json_agg(t ORDER BY id), '[]')::text FROM courses AS t",
		"SELECT coalesce(json_agg(t ORDER BY name), '[]')::text FROM breaches AS t",
	} {
		var a, b string
		from.Scan(query, nil, &a)
		if to.Scan(query, nil, &b); a != b || a == "[]" {
			t.Errorf("%s says\n%.300s\nand in the other cell\n%.300s", query, a, b)
		}
	}
	if to.must("catalogue", "export") != lines {
		t.Error("the export of the other cell is another one")
	}
	to.says([]string{"catalogue", "import", fileOf(t, lines)}, "0 added, 0 changed, 0 invalid")
	if out := to.must("audit"); strings.Count(out, " catalogue import ") != 2 {
		t.Errorf("the audit trail is %s", out)
	}
}

// TestEnableTemplates: what is enabled is what a client may be sent, until all
// is enabled again.
func TestEnableTemplates(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	c.Must(c.LoadTemplates(t.Context()))
	id := c.AddClient()
	client := id.String()
	options := func() int {
		t.Helper()
		tenant, err := c.Tenant(c.As(t.Context()), id)
		c.Must(err)
		options, err := tenant.TemplateOptions(t.Context())
		c.Must(err)
		return len(options)
	}
	all := options()
	if got := c.must("templates", "enable", client, "it", "finance", "it"); !strings.HasSuffix(got, " ("+client+") receives templates in the categories finance, it\n") {
		t.Error(got)
	}
	if n := options(); n == 0 || n >= all {
		t.Errorf("%d of %d templates are enabled", n, all)
	}
	c.refused(false, []string{"templates", "enable", client, "it", "sport"}, `"sport"`, "use one of delivery, executive, finance")
	c.refused(false, []string{"templates", "enable", domain.ClientID{15: 1}.String(), "it"}, "no client")
	c.says([]string{"templates", "enable", client, "all"}, "delivery")
	if n := options(); n != all {
		t.Errorf("%d of %d templates are enabled", n, all)
	}
}

// TestSeed: what is added is said, and that nothing was where it was cut short.
func TestSeed(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	out, errs, err := c.run(t.Context(), nil, "seed", "--clients=4", "--users=50")
	if err != nil || !strings.HasPrefix(out, "added 4 clients with 50 users in ") || errs != "seeding 4 clients and 50 users\n" {
		t.Errorf("printed %q and %q: %v", out, errs, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	more := Seed{Clients: 5, Users: 20_000}
	more.DatabaseURL = strings.TrimPrefix(c.flag, "--database-url=")
	begun := cancelling{cancel}
	if err := more.Run(ctx, cli.Env{Out: io.Discard, Err: begun}); err == nil || err.Error() != "canceled; nothing was added" {
		t.Error(err)
	}
	var clients, users int
	if c.Scan("SELECT (SELECT count(*) FROM clients), (SELECT count(*) FROM users)", nil, &clients, &users); clients != 4 || users != 50 {
		t.Errorf("there are %d clients with %d users", clients, users)
	}
}

// cancelling cancels when it is told that the seeding begins.
type cancelling struct{ cancel context.CancelFunc }

func (c cancelling) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("seeding")) {
		c.cancel()
	}
	return len(p), nil
}

func TestReadBreaches(t *testing.T) {
	t.Parallel()
	file, err := readBreaches([]byte("\ufeff" + `[
		{"Name": "Forum", "Title": "A forum", "Domain": "forum.example", "BreachDate": "2024-05-06", "DataClasses": ["Names", "Passwords"], "PwnCount": 3},
		{"Name": "Made", "Title": "Made up", "DataClasses": ["Names"], "IsFabricated": true},
		{"Name": "Gone", "Title": "Gone", "DataClasses": ["Names"], "IsRetired": true},
		{"Name": "Spam", "Title": "Spam", "Domain": "", "BreachDate": "", "DataClasses": ["Physical addresses"], "IsSpamList": true},
		{"Name": "Clinic", "Title": "Clinic", "DataClasses": ["Names"], "IsSensitive": true},
		{"Name": "Forum", "Title": "Again", "DataClasses": ["Names"]},
		{"Name": "Late", "Title": "Late", "BreachDate": "2024-02-30", "DataClasses": ["Names"]},
		{"Name": "Empty", "Title": "Empty"},
		{"Name": "", "Title": "Nameless", "DataClasses": ["Names"]},
		{"Name": "Zero", "Title": "a\u0000b", "DataClasses": ["Names"]},
		{"Name": 7},
		"text"
	]`))
	if err != nil {
		t.Fatal(err)
	}
	if file.fabricated != 1 || file.retired != 1 || len(file.breaches) != 3 {
		t.Fatalf("read %+v", file)
	}
	forum, spam, clinic := file.breaches[0], file.breaches[1], file.breaches[2]
	if forum.Severity != domain.SeverityCritical || *forum.Domain != "forum.example" || forum.On.String() != "2024-05-06" {
		t.Errorf("read %+v", forum)
	}
	if spam.Severity != domain.SeverityLow || spam.Domain != nil || spam.On != nil || !spam.SpamList {
		t.Errorf("read %+v", spam)
	}
	if clinic.Severity != domain.SeverityHigh || !clinic.Sensitive {
		t.Errorf("read %+v", clinic)
	}
	want := []string{"entry 6 (\"Forum\"): entry 1 has the same name", "entry 7 (\"Late\"): BreachDate must be a date, such as 2026-01-31, got \"2024-02-30\"", "entry 8 (\"Empty\"): the entry needs DataClasses",
		"entry 9 (\"\"): the entry needs a Name and a Title", "entry 10 (\"Zero\"): the entry contains a NUL", "entry 11", "entry 12"}
	if len(file.faults) != len(want) {
		t.Fatalf("%d faults: %v", len(file.faults), file.faults)
	}
	for i, fault := range file.faults {
		if !strings.HasPrefix(fault.Error(), want[i]) {
			t.Errorf("%s, want %s", fault, want[i])
		}
	}
	if _, err := readBreaches([]byte(`{"Name": "Forum"}`)); err == nil {
		t.Error("an object was read as a list")
	}
}

// TestBreachBounds: what is longer than a signal may name is refused before it is
// rated.
func TestBreachBounds(t *testing.T) {
	long := strings.Repeat("я", 256)
	file, err := readBreaches([]byte(`[
		{"Name": "` + long + `", "Title": "Long", "DataClasses": ["Names"]},
		{"Name": "Class", "Title": "Class", "DataClasses": ["` + long + `"]},
		{"Name": "Many", "Title": "Many", "DataClasses": ["Names"` + strings.Repeat(`, "Names"`, 100) + `]},
		{"Name": "` + long[2:] + `", "Title": "Fits", "DataClasses": ["Names"` + strings.Repeat(`, "Names"`, 99) + `]}
	]`))
	if err != nil {
		t.Fatal(err)
	}
	if len(file.breaches) != 1 || file.breaches[0].Title != "Fits" || len(file.faults) != 3 {
		t.Errorf("read %d breaches: %v", len(file.breaches), file.faults)
	}
}

func TestReadTemplates(t *testing.T) {
	t.Parallel()
	read, err := importTemplatesCmd{Language: domain.Spanish, Category: "general", Difficulty: 3}.readTemplates([]byte(`[
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
		{"name": "` + strings.Repeat("é", 201) + `", "subject": "s", "from_address": "a@b.c", "html": "<a href={{url}}></a>", "text": "t", "deception_score": 1},
		{"name": "Wordy", "subject": "` + strings.Repeat("é", 501) + `", "from_address": "a@b.c", "html": "<a href={{url}}></a>", "text": "t", "deception_score": 1},
		7
	]`))
	templates, faults := read.templates, read.faults
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
		`entry 2 ("Season"): the template contains unknown placeholders: time.current_season(), x y`, `entry 3 ("Reset"): entry 1 has the same name`,
		`entry 4 ("No link"): has no link`, `entry 5 ("Score"): deception_score must be between 1 and 6: 7`, `entry 6 ("Sender"): the sender is not an address`, `entry 7 (""): name is required`,
		`entry 8 ("Empty"): subject is required`, `entry 9 ("Sign"): the indicator "luck"`, `entry 10 ("Silent"): has no indicators`,
		`entry 11 ("Two words"): the sender's address contains a placeholder`, `entry 12 ("Hidden"): has no link`,
		`entry 13 ("Open"): the template contains unknown placeholders: {{ without its }}`, `entry 14 ("Swallowed"): the template contains unknown placeholders: url, {{url`,
		`entry 15 ("éé`, `entry 16 ("Wordy"): subject must be at most 500 characters`, `entry 17`,
	}
	if len(faults) != len(want) {
		t.Fatalf("%d faults: %v", len(faults), faults)
	}
	for i, fault := range faults {
		if !strings.HasPrefix(fault.Error(), want[i]) {
			t.Errorf("%s, want %s", fault, want[i])
		}
	}
	for text, want := range map[string]string{`{}`: "not a JSON array", "\xff\xfe[\x00]\x00": "UTF-16", "\x1f\x8b\x08\x00": "gzip"} {
		if _, err := (importTemplatesCmd{}).readTemplates([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q was read as a list: %v", text, err)
		}
	}
	if read, err := (importTemplatesCmd{}).readTemplates([]byte("\ufeff[]")); err != nil || read.faults != nil {
		t.Errorf("%+v, %v", read, err)
	}
}

// goPhishTemplates is an export of GoPhish (GET /api/templates/), whose documentation has the fields.
const goPhishTemplates = `[
	{"id": 1, "name": "Parcel", "envelope_sender": "", "subject": "{{.FirstName}}, your parcel", "text": "",
		"html": "<html><head><title>x</title></head><body><p>Dear {{ .FirstName }} {{.LastName}} ({{.Position}}, {{.Email}}),</p>\r\n<p>see <a href=\"{{.URL}}\">the label</a> or <a href=\"https://live.example/x\">this</a>.</p><p>{{.From}}</p>{{.Tracker}}<img src=\"{{.TrackingURL}}\"><img src=\"https://cdn.example/logo.png\"></body></html>",
		"modified_date": "2024-05-06T07:08:09.123456Z", "attachments": []},
	{"id": 2, "name": "Plain", "envelope_sender": "Payroll <pay@pay.example>", "subject": "Payroll", "text": "Hello {{.FirstName}},\n\nsign in at {{.URL}} <now>.\n{{.From}}", "html": "",
		"modified_date": "2024-05-06T07:08:09Z", "attachments": [{"content": "eA==", "type": "text/plain", "name": "a.txt"}]},
	{"id": 3, "name": "Logic", "envelope_sender": "", "subject": "x", "text": "", "html": "<a href=\"{{.URL}}\">{{if .FirstName}}x{{end}}</a>", "modified_date": "2024-05-06T07:08:09Z", "attachments": []}
]`

// TestGoPhishTemplates verifies that an export of GoPhish is read as it is, and what is said of it.
func TestGoPhishTemplates(t *testing.T) {
	t.Parallel()
	read, err := importTemplatesCmd{Language: domain.English, Category: "parcels", Difficulty: 3, From: "Post Office <post@post.example>"}.readTemplates([]byte(goPhishTemplates))
	if err != nil || len(read.templates) != 2 || len(read.faults) != 1 || !strings.HasPrefix(read.faults[0].Error(), `entry 3 ("Logic"): the template contains unknown placeholders: end, if .FirstName`) {
		t.Fatalf("%+v, %v", read, err)
	}
	parcel, plain := read.templates[0], read.templates[1]
	for _, c := range [][2]string{
		{parcel.Subject, "{{first_name}}, your parcel"}, {parcel.From, "Post Office <post@post.example>"},
		{parcel.Text, "Dear {{first_name}} {{last_name}} ({{job_title}}, {{email}}),\nsee the label ({{link}}) or this (https://live.example/x).\nPost Office\n"},
		{plain.From, "Payroll <pay@pay.example>"}, {plain.HTML, "<p>Hello {{first_name}},</p>\n<p>sign in at {{link}} &lt;now&gt;.<br>\nPayroll</p>\n"},
		{strings.Join(read.notes, "\n"), "Parcel: links that will lead to the tracked page: https://live.example/x"},
		{strings.Join(read.warnings, "\n"), "Parcel: emails load content from other servers, whose owners can see who opens the emails: https://cdn.example/logo.png\nPlain: attachments are not imported: 1"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
	for _, part := range []string{"Dear {{first_name}} {{last_name}} ({{job_title}}, {{email}}),", `<a href="{{link}}">`, "<p>Post Office</p><img src=\"{{link}}/open.gif\">"} {
		if !strings.Contains(parcel.HTML, part) {
			t.Errorf("the HTML lacks %s: %s", part, parcel.HTML)
		}
	}
	if !slices.Equal(parcel.Indicators, []domain.Indicator{domain.FromOutside, domain.ForeignLink}) || parcel.Difficulty != 3 {
		t.Errorf("read %+v", parcel)
	}
	read, err = importTemplatesCmd{Language: domain.English, Category: "parcels", Difficulty: 3}.readTemplates([]byte(goPhishTemplates))
	if err != nil || len(read.faults) != 2 || read.faults[0].Error() != `entry 1 ("Parcel"): from_address is required; for templates without a sender, set --from` {
		t.Errorf("without a sender: %+v, %v", read, err)
	}

	c := newConsole(t)
	out, errs, err := c.run(t.Context(), nil, "templates", "import", "--language=en", "--category=parcels", "--from=post@post.example", fileOf(t, goPhishTemplates))
	if err == nil || !strings.HasPrefix(out, "Parcel: links that will lead") || !strings.HasSuffix(out, "2 added, 0 changed, 0 unchanged; 1 skipped\n") || !strings.HasPrefix(errs, "partnerapi: warning: Parcel: emails load") {
		t.Errorf("%q, %q, %v", out, errs, err)
	}
}
