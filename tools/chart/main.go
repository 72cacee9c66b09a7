// Command chart checks a Helm chart, in every combination of its main values: as helm lint --strict does,
// as helm template renders it, and as Kubernetes would read it. It is its own module, so that the service
// does not depend on Kubernetes.
package main

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// required is what an installation has to give.
const required = "{publicURL: https://api.example.com, reportStore: 's3://reports?region=eu-central-1'}"

// options are the main values, and what each may be beside its default.
var options = [][]string{
	{"{work: {enabled: false}}"},
	{"{migrate: {enabled: false}}"},
	{"{ingress: {enabled: true, className: nginx, annotations: {example.com/body: 1m}}}", "{ingress: {enabled: true, tlsSecret: certificate}}"},
	{"{podDisruptionBudget: {enabled: false}}"},
	{"{networkPolicy: {enabled: false}}", "{networkPolicy: {from: [{podSelector: {}}], metricsFrom: [{ipBlock: {cidr: 10.0.0.0/8}}]}}"},
	{"{serviceMonitor: {enabled: true, labels: {release: prometheus}}}"},
	{`{data: {claim: reports}, reportStore: '', certificates: authorities, trustedProxies: [10.0.0.0/8, 192.0.2.1],
	  image: {repository: registry.example.com/partnerapi, tag: v9, pullSecrets: [registry]}, migrate: {secret: owner},
	  env: {PARTNERAPI_MAIL_FROM: no-reply@example.com}, serviceAccount: {annotations: {example.com/role: reports}},
	  podLabels: {example.com/identity: use}, nodeSelector: {disk: ssd}, tolerations: [{key: busy, operator: Exists}], affinity: {podAntiAffinity: {}}}`},
}

// refused are values that the chart must not be installed with.
var refused = []string{
	"{publicURL: ''}",
	"{publicURL: api.example.com}",
	"{publicURL: https://api.example.com/partner, ingress: {enabled: true}}",
	"{reportStore: ''}",
	"{reportStore: 'file:///reports'}",
	"{secret: ''}",
	"{serve: {replica: 3}}",
	"{env: {PARTNERAPI_DATABASE_URL: 'postgres://user:password@host/name'}}",
	"{env: {partnerapi_mail_from: no-reply@example.com}}",
}

func main() {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // Helm logs what it returns as errors too.
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: chart FOLDER")
		os.Exit(2)
	}
	n, err := check(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d combinations of values, 0 faults\n", os.Args[1], n)
}

// check checks the chart of a folder, and counts the combinations. It ends at the first one with a fault.
func check(folder string) (int, error) {
	if err := prepare(); err != nil {
		return 0, err
	}
	c, err := loader.Load(folder)
	if err != nil {
		return 0, err
	}
	if err := lintStrictly(folder, nil); err != nil {
		return 0, fmt.Errorf("without values: %w", err)
	}
	for _, text := range refused {
		if _, err := render(c, merged(text)); err == nil {
			return 0, fmt.Errorf("%s is not refused", text)
		}
	}

	n := 0
	for values := range combinations(options) {
		n++
		err := lintStrictly(folder, merged(values...))
		if err == nil {
			err = checkRendered(c, merged(values...))
		}
		if err != nil {
			return n, fmt.Errorf("with %s: %w", strings.Join(values, " "), err)
		}
	}
	return n, nil
}

// combinations yields every choice of at most one value of each option.
func combinations(of [][]string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		if len(of) == 0 {
			yield(nil)
			return
		}
		for rest := range combinations(of[1:]) {
			for _, value := range append([]string{""}, of[0]...) {
				if !yield(append([]string{value}, rest...)) {
					return
				}
			}
		}
	}
}

// checkRendered checks the objects of an installation with these values.
func checkRendered(c *chart.Chart, values map[string]any) error {
	files, err := render(c, values)
	if err != nil {
		return err
	}
	return checkObjects(files)
}

// merged returns the required values with others over them.
func merged(texts ...string) map[string]any {
	values := map[string]any{}
	for _, text := range append([]string{required}, texts...) {
		var more map[string]any
		if err := yaml.Unmarshal([]byte(text), &more); err != nil {
			panic(text + ": " + err.Error())
		}
		values = util.CoalesceTables(more, values)
	}
	return values
}

// lintStrictly lints as helm lint --strict does: a warning is a fault.
func lintStrictly(folder string, values map[string]any) error {
	var faults []error
	for _, m := range lint.RunAll(folder, values, "default").Messages {
		if m.Severity >= support.WarningSev {
			faults = append(faults, fmt.Errorf("%s: %w", m.Path, m.Err))
		}
	}
	return errors.Join(faults...)
}

// render returns the files of an installation, by name.
func render(c *chart.Chart, values map[string]any) (map[string]string, error) {
	release := common.ReleaseOptions{Name: "partnerapi", Namespace: "default", Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}
