package op

import (
	"cmp"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// bindQuery sets the parameters of the query in the input v, and adds the faults to f.
func (in *Input) bindQuery(v reflect.Value, r Request, f *rule.Faults) {
	bracketed := byBrackets(r.Query)
	for _, p := range in.Query {
		if !r.Release.Includes(p.since) { // a later release has it, so it is an unknown parameter
			continue
		}
		if message := p.bracketFault(bracketed[p.Name]); message != "" && !r.Lenient {
			f.Add(p.Name, message)
			continue
		}
		text, given := p.textIn(r.Query, bracketed[p.Name])
		if !given {
			continue
		}
		field := v.FieldByIndex(p.index)
		if message := p.laterValue(text, r.Release); message != "" {
			f.Add(p.Name, message)
			continue
		}
		if message := p.set(field, text, r.Arguments); message != "" {
			f.Add(p.Name, message)
		} else if field.Kind() == reflect.Pointer && field.Elem().IsZero() && p.isList {
			field.SetZero() // an empty list is absent; one of ids (IDList) is never zero here
		}
	}
}

// laterValue returns what is wrong with the text of an enum that has values of later releases; "" if the release accepts
// the text, or has all values.
func (p Param) laterValue(text string, release Release) string {
	enum, ok := reflect.Zero(p.Type).Interface().(rule.Enum)
	if !ok {
		return ""
	}
	values := release.EnumValues(enum)
	if len(values) == len(enum.Values()) || slices.Contains(values, text) {
		return ""
	}
	return rule.OneOfMessage(values)
}

// set sets the parameter's field from its text. It returns what is wrong with the text; "" if it is valid. Rules of tags
// are not checked here, except that an email address with a space is wrong if a plus sign makes it valid. isArgument says
// that the caller wrote no query, and so no plus sign.
func (p Param) set(field reflect.Value, text string, isArgument bool) (message string) {
	const writeEscaped = "; write + as %2B"
	withPlus := text
	if !isArgument {
		withPlus = strings.ReplaceAll(text, " ", "+") // in a query, a plus sign stands for a space
	}
	if err := setText(field, text); err != nil {
		if withPlus != text && setText(reflect.New(p.Type).Elem(), withPlus) == nil {
			return err.Error() + writeEscaped
		}
		return err.Error()
	}
	if p.isEmail && withPlus != text {
		if _, ok := domain.CleanEmail(withPlus); ok {
			return "must be an email address" + writeEscaped
		}
	}
	return ""
}

// bracket is the name of a parameter in a query with brackets after it, which PHP and some clients write for lists:
// ids[] or ids[0]. inside is the text in the brackets.
type bracket struct{ name, inside string }

// byBrackets returns the names in a query that have brackets, by the name before them; nil for none.
func byBrackets(query url.Values) map[string][]bracket {
	var found map[string][]bracket
	for name := range query {
		param, rest, ok := strings.Cut(name, "[")
		if !ok || !strings.HasSuffix(rest, "]") {
			continue
		}
		if found == nil {
			found = map[string][]bracket{}
		}
		found[param] = append(found[param], bracket{name, strings.TrimSuffix(rest, "]")})
	}
	for _, names := range found {
		slices.SortFunc(names, func(a, b bracket) int { // ids[], ids[2], ids[10]
			return cmp.Or(cmp.Compare(len(a.inside), len(b.inside)), cmp.Compare(a.inside, b.inside))
		})
	}
	return found
}

// isIndex reports whether the brackets are those of a list: empty, or with a decimal number.
func (b bracket) isIndex() bool { return strings.Trim(b.inside, "0123456789") == "" }

// bracketFault returns what is wrong with the names of the parameter that have brackets; "" if nothing is.
func (p Param) bracketFault(names []bracket) string {
	switch {
	case len(names) > 0 && !p.isList:
		return "is not a list; write its name without brackets"
	case slices.ContainsFunc(names, func(b bracket) bool { return !b.isIndex() }):
		return "must contain only a number in brackets, such as " + p.Name + "[0]"
	}
	return ""
}

// textIn returns the parameter's text in a query, and whether it is given. The values of a list are joined, those of
// names with brackets, its own, included. Of another parameter the first value counts; if that is empty, the parameter
// is not given.
func (p Param) textIn(query url.Values, brackets []bracket) (string, bool) {
	if !p.isList {
		text := query.Get(p.Name)
		return text, text != ""
	}
	values, given := query[p.Name]
	for _, b := range brackets {
		if b.isIndex() {
			values, given = slices.Concat(values, query[b.name]), true
		}
	}
	return strings.Join(values, ","), given
}

// NamesList reports whether a query has a list parameter, by its name with or without brackets.
func NamesList(query url.Values, name string) bool {
	return query.Has(name) || slices.ContainsFunc(byBrackets(query)[name], bracket.isIndex)
}
