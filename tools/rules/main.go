// Command rules checks files of Prometheus rules as promtool does: their form, and
// their expressions and templates. It is a module of its own, so that the service
// does not depend on Prometheus.
package main

import (
	"fmt"
	"os"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
)

func main() {
	failed := len(os.Args) < 2
	for _, file := range os.Args[1:] {
		groups, faults := rulefmt.ParseFile(file, false, model.UTF8Validation)
		for _, fault := range faults {
			fmt.Fprintln(os.Stderr, fault)
		}
		n := 0
		if groups != nil {
			for _, group := range groups.Groups {
				n += len(group.Rules)
			}
		}
		fmt.Printf("%s: %d rules, %d faults\n", file, n, len(faults))
		failed = failed || len(faults) > 0 || n == 0
	}
	if failed {
		os.Exit(1)
	}
}
