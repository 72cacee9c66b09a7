package openapi

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// field is a field of a struct that is a member of its JSON object.
type field struct {
	reflect.StructField
	name string
	// omits says that an output may lack the member (omitempty, omitzero).
	omits bool
}

// membersOf lists the JSON members of a struct, in the order of its fields. Fields of embedded structs count as its
// own; of several with one name the shallowest wins, and none if two are equally shallow.
func membersOf(t reflect.Type) ([]field, error) {
	var all []field
	if err := collectFields(t, nil, &all); err != nil {
		return nil, err
	}
	depths := map[string]int{}
	count := map[string]int{}
	for _, f := range all {
		switch depth, seen := depths[f.name]; {
		case !seen || len(f.Index) < depth:
			depths[f.name], count[f.name] = len(f.Index), 1
		case len(f.Index) == depth:
			count[f.name]++
		}
	}
	var dominant []field
	for _, f := range all {
		if len(f.Index) == depths[f.name] && count[f.name] == 1 {
			dominant = append(dominant, f)
		}
	}
	return dominant, nil
}

// collectFields appends the exported fields of t, whose index is given, and of the structs that it embeds, without
// those with json:"-". Options other than omitempty and omitzero are an error.
func collectFields(t reflect.Type, index []int, all *[]field) error {
	for i := range t.NumField() {
		f := t.Field(i)
		f.Index = append(append([]int{}, index...), i)
		tag := f.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct {
			if err := collectFields(f.Type, f.Index, all); err != nil {
				return err
			}
			continue
		}
		if !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		member := field{StructField: f, name: name}
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "":
			case "omitempty", "omitzero":
				member.omits = true
			default:
				return fmt.Errorf("%s: the json option %s has no meaning here", name, option)
			}
		}
		*all = append(*all, member)
	}
	return nil
}

// goNames are the names of Go types for components whose own names oapi-codegen needs for its own types.
var goNames = map[string]string{"Client": "ClientResource"}

// names are the component names of types whose own name is ambiguous outside their package.
var names = map[string]string{
	"Assignment": "TrainingAssignment", "ClientAssignment": "UserTrainingAssignment", "AverageOn": "DailyScore", "BySeverity": "SeverityCounts",
	"Creator": "CollectionCreator", "Directory": "DirectoryProvider", "EventWith": "Event", "EmailClass": "EmailClassification",
	"Factor": "RiskFactor", "FactorKey": "RiskFactorKey", "FactorTotal": "RiskFactorTotal", "Member": "CollectionMember",
	"Module": "FrameworkModule", "Override": "FrameworkOverride", "Reminded": "PolicyReminded",
	"ReminderSkip": "ReminderSkipReason", "ResultStatus": "PhishingResultStatus", "ScopeType": "PolicyScope",
	"SignFilter": "SignatureFilter", "SkipReason": "AssignmentSkipReason", "Tallies": "RiskCounts", "WebhookSwitch": "WebhookStatusChange",
}

// componentName returns the component name of a type: User, and UserPage for Page[User]. Documents of OpenAPI 3.0 use
// goNames instead of names.
func (m *mapper) componentName(t reflect.Type) string {
	if m.of.OpenAPI30 {
		name := cleanName(t.Name(), nil)
		return cmp.Or(goNames[name], name)
	}
	return cleanName(t.Name(), names)
}

// cleanName returns a type's name without package paths and punctuation, with the names of its type arguments first.
// others maps names to their replacements.
func cleanName(name string, others map[string]string) string {
	base, args, _ := strings.Cut(name, "[")
	base = base[strings.LastIndexAny(base, "./")+1:]
	base, _, _ = strings.Cut(base, "·") // a type declared in a function has a number after it
	var out strings.Builder
	for _, arg := range arguments(strings.TrimSuffix(args, "]")) {
		out.WriteString(cleanName(arg, others))
	}
	base = upperFirst(strings.TrimLeft(base, "*"))
	return out.String() + cmp.Or(others[base], base)
}

// upperFirst returns the word with its first letter in upper case.
func upperFirst(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToUpper(first)) + word[size:]
}

// arguments splits a list of type arguments at its top-level commas.
func arguments(list string) (args []string) {
	if list == "" {
		return nil
	}
	depth, start := 0, 0
	for i, r := range list {
		switch r {
		case '[':
			depth++
		case ']':
			depth--
		case ',':
			if depth == 0 {
				args = append(args, list[start:i])
				start = i + 1
			}
		}
	}
	return append(args, list[start:])
}
