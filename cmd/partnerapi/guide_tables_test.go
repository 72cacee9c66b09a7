package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

const deltaFile = "../../docs/guide/delta-sync.md"

// deltaOf is what the declaration of a list does not say: the fields that tell its items
// apart, where that is not id, and what a list that can be asked for changes does not
// tell of.
var deltaOf = map[string]struct{ key, missed string }{
	"admins.list":               {},
	"clients.list":              {missed: "archived clients, and those that the key lost"},
	"users.list":                {missed: "nothing: who leaves is `inactive`"},
	"users.find":                {missed: "users whose address changed"},
	"users.emails":              {key: "none", missed: "nothing"},
	"users.training":            {key: "`course_id`", missed: "courses that were withdrawn"},
	"training.assignments.list": {key: "`user_id`, `course_id`", missed: "courses that were withdrawn"},
	"courses.list":              {},
	"collections.list":          {missed: "deleted collections"},
	"collections.members.list":  {key: "`user_id`", missed: "who is no member any more"},
	"policies.list":             {missed: "archived policies"},
	"policies.users.list":       {key: "`user_id`", missed: "who left the audience, or is `inactive`"},
	"dark_web.exposures.list":   {key: "`user_id`, `breach_name`", missed: "nothing"},
	"dark_web.users.list":       {key: "`user_id`", missed: "who is `inactive`"},
	"phishing.results.list":     {key: "`result_id`", missed: "nothing"},
	"phishing.templates.list":   {missed: "nothing"},
	"phishing.reported.list":    {missed: "nothing"},
	"frameworks.list":           {},
	"clients.frameworks":        {missed: "assignments that were removed"},
	"reports.list":              {missed: "reports of more than 90 days ago"},
	"sync.runs.list":            {key: "none", missed: "runs of more than 90 days ago"},
	"webhooks.list":             {},
	"webhooks.deliveries.list":  {},
	"events.list":               {missed: "events of more than 30 days ago"},
}

// TestDeltaTable holds the table of the guide to delta sync to the declarations of lists.
func TestDeltaTable(t *testing.T) {
	t.Parallel()
	document, err := documentV2(op.Latest)
	if err != nil {
		t.Fatal(err)
	}
	left := maps.Clone(deltaOf)
	var table strings.Builder
	table.WriteString("| list | told apart by | `updated_at` | how to ask for what changed | what it does not report |\n|---|---|---|---|---|\n")
	for _, o := range api.Operations {
		m := o.Meta()
		if m.Method != http.MethodGet || param(o, "cursor") == nil {
			continue
		}
		said, ok := left[m.ID]
		if !ok {
			t.Errorf("nothing is said of %s", m.ID)
		}
		delete(left, m.ID)
		path := "/v2" + op.Braced(m.Path)
		item := itemOf(document, op.Braced(m.Path))
		key := cmp.Or(said.key, "`id`")
		if fields := strings.FieldsFunc(key, func(r rune) bool { return r == '`' || r == ',' || r == ' ' }); key != "none" {
			for _, field := range fields {
				if item[field] == nil {
					t.Errorf("the items of %s have no %s", m.ID, field)
				}
			}
		} else if item["id"] != nil {
			t.Errorf("the items of %s have an id", m.ID)
		}
		fmt.Fprintf(&table, "| `GET %s` | %s | %s | %s | %s |\n", path, key,
			map[bool]string{true: "yes", false: "no"}[item["updated_at"] != nil], changes(o), said.missed)
	}
	if len(left) > 0 {
		t.Errorf("these are no lists: %v", left)
	}
	holdSection(t, deltaFile, "Every list", table.String())
}

func param(o op.Declaration, name string) *op.Param {
	params := o.Input().Query
	if i := slices.IndexFunc(params, func(p op.Param) bool { return p.Name == name }); i >= 0 {
		return &params[i]
	}
	return nil
}

// itemOf is the fields of a list's items, as the document has them.
func itemOf(document *openapi3.T, path string) openapi3.Schemas {
	page := document.Paths.Value(path).Get.Responses.Status(http.StatusOK).Value.Content.Get("application/json").Schema.Value
	fields := openapi3.Schemas{}
	item := page.Properties["data"].Value.Items.Value
	if len(item.OneOf) > 0 {
		item = item.OneOf[0].Value // the forms of events have the same fields
	}
	maps.Copy(fields, item.Properties)
	for _, part := range item.AllOf {
		maps.Copy(fields, part.Value.Properties)
	}
	return fields
}

// changes says how a list is asked for what changed.
func changes(o op.Declaration) string {
	if p := param(o, "updated_since"); p != nil {
		return "`updated_since`. " + p.Tag.Get("doc")
	}
	switch {
	case o.Meta().ID == "events.list":
		return "the [cursor](webhooks.md#read-the-feed) that you kept"
	case param(o, "since") != nil:
		return "`since`. " + param(o, "since").Tag.Get("doc")
	}
	return "read it whole"
}

// holdSection holds a part of a guide, from its heading of the second level to the next
// one, to a text, or writes it with -update.
func holdSection(t *testing.T, file, heading, want string) {
	t.Helper()
	read, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(read), "\n## "+heading+"\n\n")
	_, after, ended := strings.Cut(rest, "\n## ")
	if !ok || !ended {
		t.Fatalf("%s has no part %q", file, heading)
	}
	text := before + "\n## " + heading + "\n\n" + want + "\n## " + after
	switch {
	case text == string(read):
	case !*update:
		t.Errorf("%s, %s: run make operations\n%s", file, heading, v2test.Diff(string(read), text))
	default:
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// reportsOf is what is in a report of a type.
var reportsOf = map[domain.ReportType]string{
	domain.ExecutiveSummary:     "one page for a manager: score and trend, training, phishing, exposures, policies, frameworks, what to do next",
	domain.RiskOverview:         "grades, roles, factors and trend, and the 25 users with the lowest scores",
	domain.PhishingOverview:     "rates by month and by category of the mails, who clicked repeatedly",
	domain.TrainingOverview:     "on-track rate, completion by course and by month",
	domain.TrainingPerformance:  "every user's courses: done, overdue, next",
	domain.EmployeeHistory:      "every user's events with their dates",
	domain.CourseDetails:        "each course, with who has completed it and who has not",
	domain.ComplianceReport:     "each framework with its requirements: met or not, measured and target",
	domain.PolicyReport:         "policies with their sign-off",
	domain.PolicyAcknowledgment: "users by policy",
	domain.DarkWebReport:        "exposures by severity, by breach and by user",
	domain.MonthlyReport:        "a month against the one before",
	domain.TrainingStatus:       "users by course, with status and dates",
	domain.ManagerTraining:      "training by manager and by department",
	domain.PhishingPerformance:  "every user's mails: sent, opened, clicked, reported, submitted",
	domain.GlobalHealth:         "all areas against the average of the partner's other clients",
}

// TestReportTable holds the table of the guide to reports to the types that there are.
func TestReportTable(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| type | period | what is in it |\n|---|---|---|\n")
	for _, r := range domain.ReportTypes {
		if reportsOf[r] == "" {
			t.Errorf("nothing is said of %s", r)
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", r, map[bool]string{true: "yes", false: "no"}[r.HasPeriod()], reportsOf[r])
	}
	holdSection(t, "../../docs/guide/report.md", "Types", table.String())
}
