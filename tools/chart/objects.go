package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	disruption "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

var (
	// decoder reads an object into Kubernetes' own type, and refuses unknown fields.
	decoder runtime.Decoder
	// restricted is Kubernetes' strictest standard of pods.
	restricted policy.Evaluator
)

// prepare makes decoder and restricted.
func prepare() error {
	types := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(types), monitoring.AddToScheme(types)); err != nil {
		return err
	}
	decoder = serializer.NewCodecFactory(types, serializer.EnableStrict).UniversalDeserializer()
	var err error
	restricted, err = policy.NewEvaluator(policy.DefaultChecks(), nil)
	return err
}

// installation has the objects of a chart that refer to each other.
type installation struct {
	pods     []core.PodTemplateSpec
	services []*core.Service
	others   []runtime.Object
}

// checkObjects checks the objects of rendered files.
func checkObjects(files map[string]string) error {
	var all installation
	for name, text := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			continue
		}
		if err := all.add(text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return all.check()
}

// add decodes the objects of a file.
func (i *installation) add(text string) error {
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(strings.TrimSpace(string(document))) == 0 {
			continue
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return err
		}
		switch o := object.(type) {
		case *apps.Deployment:
			i.pods = append(i.pods, o.Spec.Template)
		case *batch.Job:
			i.pods = append(i.pods, o.Spec.Template)
		case *core.Service:
			i.services = append(i.services, o)
		}
		i.others = append(i.others, object)
	}
}

// check reports pods with privileges, and references that lead nowhere.
func (i *installation) check() error {
	for _, pod := range i.pods {
		if err := checkPod(pod); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Labels, err)
		}
	}
	for _, object := range i.others {
		if err := i.checkReferences(object); err != nil {
			return fmt.Errorf("%s: %w", object.GetObjectKind().GroupVersionKind().Kind, err)
		}
	}
	return nil
}

func checkPod(pod core.PodTemplateSpec) error {
	latest := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, result := range restricted.EvaluatePod(latest, &pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			return errors.New(result.ForbiddenDetail)
		}
	}
	for _, c := range pod.Spec.Containers {
		if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			return errors.New("its root can be written to")
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
			return errors.New("it has no request of CPU, or no limit of memory")
		}
		for _, mount := range c.VolumeMounts {
			if !slices.ContainsFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == mount.Name }) {
				return fmt.Errorf("there is no volume %s", mount.Name)
			}
		}
	}
	return nil
}

// checkReferences checks what an object selects, and the ports that it names.
func (i *installation) checkReferences(object runtime.Object) error {
	switch o := object.(type) {
	case *apps.Deployment:
		return i.selects(*o.Spec.Selector)
	case *disruption.PodDisruptionBudget:
		return i.selects(*o.Spec.Selector)
	case *networking.NetworkPolicy:
		return i.selects(o.Spec.PodSelector)
	case *core.Service:
		var ports []string
		for _, p := range o.Spec.Ports {
			ports = append(ports, p.TargetPort.StrVal)
		}
		return i.selects(meta.LabelSelector{MatchLabels: o.Spec.Selector}, ports...)
	case *networking.Ingress:
		backend := o.Spec.Rules[0].HTTP.Paths[0].Backend.Service
		for _, s := range i.services {
			if s.Name == backend.Name && hasPort(s, backend.Port.Name) {
				return nil
			}
		}
		return fmt.Errorf("there is no service %s with a port %s", backend.Name, backend.Port.Name)
	case *monitoring.ServiceMonitor:
		selector, err := meta.LabelSelectorAsSelector(&o.Spec.Selector)
		if err != nil {
			return err
		}
		for _, s := range i.services {
			if selector.Matches(labels.Set(s.Labels)) && hasPort(s, o.Spec.Endpoints[0].Port) {
				return nil
			}
		}
		return errors.New("it selects no service")
	}
	return nil
}

func hasPort(s *core.Service, name string) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(p core.ServicePort) bool { return p.Name == name })
}

// selects reports a selector of no pod that has these ports.
func (i *installation) selects(by meta.LabelSelector, ports ...string) error {
	selector, err := meta.LabelSelectorAsSelector(&by)
	if err != nil {
		return err
	}
	for _, pod := range i.pods {
		if !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		var has []string
		for _, p := range pod.Spec.Containers[0].Ports {
			has = append(has, p.Name)
		}
		if !slices.ContainsFunc(ports, func(name string) bool { return !slices.Contains(has, name) }) {
			return nil
		}
	}
	return fmt.Errorf("it selects no pod with the ports %v", ports)
}
