package openapi

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
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
func membersOf(t reflect.Type) (dominant []field, _ error) {
	var all []field
	if err := collectFields(t, nil, &all); err != nil {
		return nil, err
	}
	for _, f := range all {
		hidden := slices.ContainsFunc(all, func(other field) bool {
			return other.name == f.name && len(other.Index) <= len(f.Index) && !slices.Equal(other.Index, f.Index)
		})
		if !hidden {
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
		name = cmp.Or(name, f.Name)
		switch options {
		case "", "omitempty", "omitzero":
			*all = append(*all, field{StructField: f, name: name, omits: options != ""})
		default:
			return fmt.Errorf("%s: the json option %s has no meaning here", name, options)
		}
	}
	return nil
}

// goNames are the names of Go types for components whose own names oapi-codegen and ogen need for their own types.
var goNames = map[string]string{"Client": "ClientResource"}

// names30 are the names of components in documents of OpenAPI 3.0 for types whose own names generators need: oapi-codegen
// for its own types, orval for those of the results of operations, such as PhishingResult for phishing.
var names30 = map[string]string{
	"Client": "ClientResource", "PhishingResult": "UserPhishingResult", "TrainingResult": "UserTrainingResult",
}

// names are the component names of types whose own name is ambiguous outside their package.
var names = map[string]string{
	"Assignment": "TrainingAssignment", "ClientAssignment": "UserTrainingAssignment", "AverageOn": "DailyScore", "BySeverity": "SeverityCounts",
	"Creator": "CollectionCreator", "Directory": "DirectoryProvider", "EventWith": "Event", "EmailClass": "EmailClassification",
	"Factor": "RiskFactor", "FactorKey": "RiskFactorKey", "FactorTotal": "RiskFactorTotal", "Member": "CollectionMember",
	"Module": "FrameworkModule", "Override": "FrameworkOverride", "Reminded": "PolicyReminded",
	"ReminderSkip": "ReminderSkipReason", "ResultStatus": "PhishingResultStatus", "ScopeType": "PolicyScope",
	"SignFilter": "SignatureFilter", "SkipReason": "AssignmentSkipReason", "Tallies": "RiskCounts", "WebhookSwitch": "WebhookStatusChange",
}

// componentName returns the component name of a type: User, and UserPage for Page[User]. Those in names are replaced or,
// in documents of OpenAPI 3.0, whole names that are in names30.
func (m *mapper) componentName(t reflect.Type) string {
	if m.source.OpenAPI30 {
		name := cleanName(t.Name(), nil)
		return cmp.Or(names30[name], name)
	}
	return cleanName(t.Name(), names)
}

// cleanName returns a type's name without package paths and punctuation, and with a type argument first: UserPage for
// api.Page[api.User]. renames holds other names for some names.
func cleanName(name string, renames map[string]string) string {
	base, argument, generic := strings.Cut(name, "[")
	base = base[strings.LastIndexAny(base, "./")+1:]
	base, _, _ = strings.Cut(base, "·") // the number of a type inside a function
	base = upperFirst(strings.TrimLeft(base, "*"))
	base = cmp.Or(renames[base], base)
	if generic {
		return cleanName(strings.TrimSuffix(argument, "]"), renames) + base
	}
	return base
}

// upperFirst returns the word with its first letter in upper case.
func upperFirst(word string) string {
	first, size := utf8.DecodeRuneInString(word)
	return string(unicode.ToUpper(first)) + word[size:]
}
