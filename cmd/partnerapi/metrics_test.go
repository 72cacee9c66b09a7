package main

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// described is a metric, as a process or docs/metrics.md tells of it.
type described struct{ kind, labels string }

var (
	metricRow   = regexp.MustCompile("(?m)^\\| `(partnerapi_[a-z_]+)` \\| ([a-z]+) \\| ([^|]*)\\|")
	metricType  = regexp.MustCompile(`(?m)^# TYPE (partnerapi_[a-z_]+) ([a-z]+)$`)
	metricLine  = regexp.MustCompile(`(?m)^(partnerapi_[a-z_]+)(?:\{(.*)\})? \S+$`)
	metricLabel = regexp.MustCompile(`([a-z_]+)="`)
	metricUsed  = regexp.MustCompile(`partnerapi_[a-z_]+`)
	backticked  = regexp.MustCompile("`([a-z_]+)`")
	histogram   = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// exposed is what a process tells of its metrics.
func exposed(text string) map[string]described {
	kinds, labels := map[string]string{}, map[string]map[string]bool{}
	for _, m := range metricType.FindAllStringSubmatch(text, -1) {
		kinds[m[1]], labels[m[1]] = m[2], map[string]bool{}
	}
	for _, m := range metricLine.FindAllStringSubmatch(text, -1) {
		name := m[1]
		if kinds[name] == "" {
			name = histogram.ReplaceAllString(name, "")
		}
		for _, label := range metricLabel.FindAllStringSubmatch(m[2], -1) {
			if label[1] != "le" {
				labels[name][label[1]] = true
			}
		}
	}
	all := map[string]described{}
	for name, kind := range kinds {
		all[name] = described{kind, strings.Join(slices.Sorted(maps.Keys(labels[name])), " ")}
	}
	return all
}

// allMetrics is what a process exposes that has all its work, and of everything that is
// counted something.
func allMetrics(t *testing.T) string {
	t.Helper()
	flag := demonstration(t)
	d := opened(t, flag)
	var partner string
	err := d.SQL().QueryRowContext(t.Context(), `SELECT p.name FROM partners AS p JOIN api_keys AS k ON k.partner_id = p.id
		GROUP BY p.id HAVING count(*) = 1 LIMIT 1`).Scan(&partner)
	if err != nil {
		t.Fatal(err)
	}
	subscribed(t, d, partner)
	must(t, "keys", "create", flag, "--name=ends", "--partner="+partner, "--clients=all", "--scopes=read",
		"--expires="+time.Now().AddDate(0, 0, 20).Format(time.DateOnly))
	for _, sql := range []string{ // nothing is posted: the delivery waits for tomorrow
		"UPDATE webhooks SET failing_since = now()", "UPDATE webhook_deliveries SET due_at = now() + interval '1 day'",
	} {
		execute(t, d, sql)
	}
	r := serving(t, flag, "--replica-"+flag[len("--database-"):], "--demo", "--redis-url=redis://"+miniredis.RunT(t).Addr(),
		"--smtp-url=smtp://"+openPostOffice(t, takeAll).address)
	r.get("/v2/clients", "pk_demo_all").want(http.StatusOK)
	return string(r.get("/metrics", "").want(http.StatusOK).body)
}

// TestMetricsAreDescribed holds docs/metrics.md to what a process with all its work
// exposes, and the alerts and the dashboard to the same.
func TestMetricsAreDescribed(t *testing.T) {
	t.Parallel()
	metrics := allMetrics(t)
	got := exposed(metrics)

	told := map[string]described{}
	for _, m := range metricRow.FindAllStringSubmatch(fileText(t, "docs/metrics.md"), -1) {
		var labels []string
		for _, label := range backticked.FindAllStringSubmatch(m[3], -1) {
			labels = append(labels, label[1])
		}
		slices.Sort(labels)
		told[m[1]] = described{m[2], strings.Join(labels, " ")}
	}
	for name, is := range got {
		if told[name] != is {
			t.Errorf("%s is a %s of the labels %q, and docs/metrics.md has %+v", name, is.kind, is.labels, told[name])
		}
	}
	for name := range told {
		if _, ok := got[name]; !ok {
			t.Errorf("docs/metrics.md tells of %s, which is not exposed", name)
		}
	}

	for _, name := range metricUsed.FindAllString(fileText(t, "docs/alerts_test.yml"), -1) {
		if _, ok := labelsOf(got, metrics, name); !ok {
			t.Errorf("docs/alerts_test.yml tells of %s, which is not exposed", name)
		}
	}
	for _, q := range append(alertQueries(t), dashboardQueries(t)...) {
		q.check(t, got, metrics)
	}
}

// promQuery is a question to Prometheus, with the texts that show labels of its answer.
type promQuery struct{ of, expr, shown string }

func alertQueries(t *testing.T) (list []promQuery) {
	t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	readYAML(t, "docs/alerts.yml", &rules)
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			shown := strings.Join(slices.Collect(maps.Values(r.Annotations)), " ")
			list = append(list, promQuery{"the alert " + r.Alert, r.Expr, shown})
		}
	}
	if len(list) < 30 {
		t.Errorf("only %d alerts", len(list))
	}
	return list
}

func dashboardQueries(t *testing.T) (list []promQuery) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct {
				Expr   string
				Legend string `yaml:"legendFormat"`
			}
		}
	}
	readYAML(t, "deploy/grafana.json", &dashboard) // JSON is YAML
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			list = append(list, promQuery{"the panel " + p.Title, target.Expr, target.Legend})
		}
	}
	if len(list) < 30 {
		t.Errorf("the dashboard asks only %d questions", len(list))
	}
	return list
}

var (
	selector   = regexp.MustCompile(`\b((?:partnerapi|process|go)_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping   = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	labelShown = regexp.MustCompile(`\$labels\.([a-z_]+)|\{\{([a-z_]+)\}\}`)
)

// labelsOf are the labels that a metric has at Prometheus, if it is exposed.
func labelsOf(got map[string]described, metrics, name string) (labels []string, ok bool) {
	own := []string{"job", "instance"}
	is, ok := got[name]
	if of := got[histogram.ReplaceAllString(name, "")]; !ok && of.kind == "histogram" {
		is, ok = of, true
		if strings.HasSuffix(name, "_bucket") {
			own = append(own, "le")
		}
	}
	if !ok { // of the runtime and the process: without labels
		return own, strings.Contains(metrics, "\n# TYPE "+name+" ")
	}
	return append(own, strings.Fields(is.labels)...), true
}

// check wants a query to name metrics that are exposed, and labels that they have.
func (q promQuery) check(t *testing.T, got map[string]described, metrics string) {
	t.Helper()
	var all []string
	for _, m := range selector.FindAllStringSubmatch(q.expr, -1) {
		labels, ok := labelsOf(got, metrics, m[1])
		if !ok {
			t.Errorf("%s asks for %s, which is not exposed", q.of, m[1])
		}
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels, label[1]) {
				t.Errorf("%s: %s has no label %s", q.of, m[1], label[1])
			}
		}
		all = append(all, labels...)
	}
	if len(all) == 0 {
		if !strings.Contains(q.expr, "up{") {
			t.Errorf("%s asks for nothing: %s", q.of, q.expr)
		}
		all = []string{"job", "instance"}
	}
	if groups := grouping.FindAllStringSubmatch(q.expr, -1); groups != nil {
		var kept []string
		for _, group := range groups {
			kept = append(kept, strings.FieldsFunc(group[1], func(r rune) bool { return r == ',' || r == ' ' })...)
		}
		for _, label := range kept {
			if !slices.Contains(all, label) {
				t.Errorf("%s: none of its metrics has a label %s", q.of, label)
			}
		}
		all = kept
	}
	for _, m := range labelShown.FindAllStringSubmatch(q.shown, -1) {
		if !slices.Contains(all, m[1]+m[2]) {
			t.Errorf("%s shows the label %s, which its answer has not", q.of, m[1]+m[2])
		}
	}
}
