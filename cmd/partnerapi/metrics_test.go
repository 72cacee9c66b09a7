package main

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
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

// TestMetricsAreDescribed holds docs/metrics.md to what a process with all its work
// exposes, and docs/alerts.yml to the same.
func TestMetricsAreDescribed(t *testing.T) {
	t.Parallel()
	r := serving(t, demonstration(t), "--demo")
	r.get("/v2/clients", "pk_demo_all").want(http.StatusOK)
	got := exposed(string(r.get("/metrics", "").want(http.StatusOK).body))

	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]described{}
	for _, m := range metricRow.FindAllStringSubmatch(string(text), -1) {
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

	for _, file := range []string{"alerts.yml", "alerts_test.yml"} {
		rules, err := os.ReadFile("../../docs/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range metricUsed.FindAllString(string(rules), -1) {
			_, whole := got[name]
			if of, ok := got[histogram.ReplaceAllString(name, "")]; !whole && (!ok || of.kind != "histogram") {
				t.Errorf("docs/%s asks for %s, which is not exposed", file, name)
			}
		}
	}
}
