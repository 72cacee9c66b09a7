// Command rules checks the format, the expressions and the templates of Prometheus rule
// files, as promtool does. It also checks the expressions in Grafana dashboards (.json).
// It is a separate module, so that the service does not depend on Prometheus.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

func main() {
	failed := len(os.Args) < 2
	for _, file := range os.Args[1:] {
		check := rules
		if strings.HasSuffix(file, ".json") {
			check = dashboard
		}
		n, faults := check(file)
		for _, fault := range faults {
			fmt.Fprintln(os.Stderr, fault)
		}
		fmt.Printf("%s: %d expressions, %d faults\n", file, n, len(faults))
		failed = failed || len(faults) > 0 || n == 0
	}
	if failed {
		os.Exit(1)
	}
}

// rules checks a file of rules, and counts them.
func rules(file string) (n int, faults []error) {
	groups, faults := rulefmt.ParseFile(file, false, model.UTF8Validation)
	if groups != nil {
		for _, group := range groups.Groups {
			n += len(group.Rules)
		}
	}
	return n, faults
}

// dashboard checks the expressions of a dashboard, and counts them.
func dashboard(file string) (n int, faults []error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, []error{err}
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return 0, []error{fmt.Errorf("%s: %w", file, err)}
	}
	for _, p := range d.Panels {
		for _, t := range p.Targets {
			n++
			if _, err := parser.ParseExpr(strings.ReplaceAll(t.Expr, "$__rate_interval", "5m")); err != nil {
				faults = append(faults, fmt.Errorf("%s: %s: %w", file, p.Title, err))
			}
		}
	}
	return n, faults
}
