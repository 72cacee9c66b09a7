package v1compat

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// study is what became of the marks that a translator was run on.
type study struct {
	sources []*spot
	runs    []trial
	// targets are the paths that the results have, sorted; moves are the sources
	// that move each, in the order of their type.
	targets []string
	moves   map[string][]*spot
}

// trial is one run of a translator: the texts of its marks, and those of its result.
type trial struct{ from, to map[string]string }

// learn runs a translator of a type on its marks: all at once, as few as can be, and
// with each value of each enum; and on each of these with one mark changed.
func learn(t reflect.Type, translate func(in any) (map[string]string, error)) (*study, error) {
	m := newMarker(t)
	m.build(t, nil)
	s := &study{sources: m.spots, moves: map[string][]*spot{}}
	try := func(choice map[string]int) (map[string]string, error) {
		in := m.build(t, choice)
		to, err := translate(in.Interface())
		s.runs = append(s.runs, trial{m.texts, to})
		s.targets = slices.AppendSeq(s.targets, maps.Keys(to))
		return to, err
	}

	moved := map[string]map[*spot]bool{}
	for _, base := range basesOf(m.spots) {
		usual, err := try(base)
		if err != nil {
			return nil, err
		}
		for _, change := range changesOf(m.spots, base) {
			changed, err := try(change.choice)
			if err != nil {
				return nil, err
			}
			for _, target := range differing(usual, changed) {
				if moved[target] == nil {
					moved[target] = map[*spot]bool{}
				}
				moved[target][change.spot] = true
			}
		}
	}
	for target, from := range moved {
		s.moves[target] = s.closest(from)
	}
	slices.Sort(s.targets)
	s.targets = slices.Compact(s.targets)
	return s, nil
}

// change is a choice that differs from another at one spot.
type change struct {
	spot   *spot
	choice map[string]int
}

func changesOf(spots []*spot, base map[string]int) (list []change) {
	for _, p := range spots {
		for i := range p.marks {
			if i != base[p.path] {
				choice := maps.Clone(base)
				choice[p.path] = i
				list = append(list, change{p, choice})
			}
		}
	}
	return list
}

// basesOf are the choices from which one mark at a time is changed.
func basesOf(spots []*spot) []map[string]int {
	sparse := map[string]int{}
	for _, p := range spots {
		sparse[p.path] = len(p.marks) - 1
	}
	bases := []map[string]int{{}, sparse}
	for _, p := range spots {
		if !p.enum {
			continue
		}
		for i := range p.marks {
			bases = append(bases, map[string]int{p.path: i})
		}
	}
	return bases
}

// differing are the paths where two results differ.
func differing(a, b map[string]string) (paths []string) {
	for path, text := range a {
		if other, ok := b[path]; !ok || other != text {
			paths = append(paths, path)
		}
	}
	for path := range b {
		if _, ok := a[path]; !ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// closest are the sources in the order of their type, without the parts that
// others of them are in: those move everything.
func (s *study) closest(from map[*spot]bool) (list []*spot) {
	for _, p := range s.sources {
		if from[p] && !holdsAny(p.path, from) {
			list = append(list, p)
		}
	}
	return list
}

func holdsAny(path string, spots map[*spot]bool) bool {
	for p := range spots {
		if strings.HasPrefix(p.path, path+".") || strings.HasPrefix(p.path, path+"[].") {
			return true
		}
	}
	return false
}

// texts are what stands at two paths in all trials, each combination once: null for
// a source that is absent, nothing for a target. Trials in which the list is empty
// that the source is in are left out.
func (s *study) texts(source, target string) [][2]string {
	seen := map[[2]string]bool{}
	for _, r := range s.runs {
		from, ok := r.from[source]
		if !ok && strings.Contains(source, "[]") {
			continue
		}
		seen[[2]string{cmp.Or(from, null), r.to[target]}] = true
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
}

// constant is the one text at a target that nothing moves; empty where it is not
// in every result.
func (s *study) constant(target string) string {
	text := ""
	for _, r := range s.runs {
		if text = r.to[target]; text == "" {
			return ""
		}
	}
	return text
}
