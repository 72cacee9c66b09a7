package v1compat

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"partnerapi/domain"
)

// claim is what a row's how says of the values of both versions.
type claim struct {
	kind string // same, renamed, converted, computed or given up
	// holds is what is so of two values that are not null; of lists, of each item.
	holds func(v1, v2 string) bool
	// wrapped says that v2 has a list of the one value.
	wrapped bool
	// absent is what the version that is written has where the other has null or
	// nothing.
	absent string
	// said reports that a relation of values is said, beside the kind.
	said bool
	// defaults is what the row says of a parameter that is left out.
	defaults string
}

var (
	idText       = regexp.MustCompile("^a (number|number as text|UUID) in v1, an id (.*) in v2$")
	valueText    = regexp.MustCompile("^`([^`]+)` for ((?:`[a-z_]+`(?:, )?)+)$")
	nullText     = regexp.MustCompile("^(?:`(.+)`|(an empty text|left out)) in v1 where v2 has null$")
	askedText    = regexp.MustCompile("^left out, v1 asks for `(.+)`$")
	defaultsText = regexp.MustCompile("^left out, (.+ in v1 and .+ in v2)$")
)

// claimOf reads a how.
func claimOf(how string) claim {
	kind, rest, _ := strings.Cut(how, ": ")
	c := claim{kind: kind, holds: func(v1, v2 string) bool { return v1 == v2 }, absent: null}
	values := map[string]string{}
	for part := range strings.SplitSeq(rest, "; ") {
		said := true
		switch id, null := idText.FindStringSubmatch(part), nullText.FindStringSubmatch(part); {
		case id != nil:
			c.holds = func(v1, v2 string) bool { return isID(id[1], id[2], v1, v2) }
		case part == "whole seconds in v1, microseconds in v2":
			c.holds = isSeconds
		case part == "a time or a day in v1, which is its start in UTC; a time in v2", part == "a time or a day in v1, which is its start in UTC":
			c.holds = isDay
		case part == "`true` unless v2 has null":
			c.holds, c.absent = func(v1, _ string) bool { return v1 == "true" }, "false"
		case valueText.MatchString(part):
			m := valueText.FindStringSubmatch(part)
			for v2 := range strings.SplitSeq(m[2], ", ") {
				values[strconv.Quote(strings.Trim(v2, "`"))] = strconv.Quote(m[1])
			}
			c.holds = func(v1, v2 string) bool { return v1 == values[v2] }
		case part == "v2 takes a list":
			c.wrapped = true
		case null != nil:
			c.absent = map[string]string{"an empty text": `""`, "left out": "", "": strconv.Quote(null[1])}[null[2]]
		case askedText.MatchString(part):
			c.absent = askedText.FindStringSubmatch(part)[1]
		case defaultsText.MatchString(part):
			c.defaults, said = defaultsText.FindStringSubmatch(part)[1], false
		default:
			said = false
		}
		c.said = c.said || said
	}
	return c
}

// fits reports whether two values are as claimed; neither is null.
func (c claim) fits(v1, v2 string) bool {
	a, b := itemsOf(v1), itemsOf(v2)
	switch {
	case c.holds(v1, v2):
		return true
	case c.wrapped:
		return len(b) == 1 && c.holds(v1, b[0])
	case a == nil || len(a) != len(b):
		return false
	}
	for i := range a {
		if !c.holds(a[i], b[i]) {
			return false
		}
	}
	return true
}

// itemsOf are the texts of a list's items; nil for what is no list, or an empty one.
func itemsOf(text string) (texts []string) {
	var items []json.RawMessage
	if json.Unmarshal([]byte(text), &items) != nil {
		return nil
	}
	for _, item := range items {
		texts = append(texts, string(item))
	}
	return texts
}

// isID reports whether v1 is the id of v2's object in one of v1's forms. The prefixes
// are those that the row names.
func isID(form, prefixes, v1, v2 string) bool {
	prefix, digits, _ := strings.Cut(strings.Trim(v2, `"`), "_")
	id, err := domain.ParseID[domain.UserKind](domain.UserKind{}.Prefix() + "_" + digits)
	if err != nil || !slices.Contains(strings.Split(prefixes, ", "), "`"+prefix+"_…`") {
		return false
	}
	number := strconv.Itoa(numberOf(id))
	return v1 == map[string]string{"number": number, "number as text": strconv.Quote(number), "UUID": strconv.Quote(id.UUID())}[form]
}

func timeIn(layout, text string) (time.Time, bool) {
	t, err := time.Parse(layout, strings.Trim(text, `"`))
	return t, err == nil
}

func isSeconds(v1, v2 string) bool {
	a, okA := timeIn(time.RFC3339, v1)
	b, okB := timeIn(time.RFC3339, v2)
	return okA && okB && !strings.Contains(v1, ".") && a.Equal(b.Truncate(time.Second))
}

func isDay(v1, v2 string) bool {
	day, ok := timeIn(time.DateOnly, v1)
	at, isTime := timeIn(time.RFC3339, v2)
	return v1 == v2 || ok && isTime && day.Equal(at)
}

// isEmpty reports whether a text stands for no value.
func isEmpty(text string) bool { return text == null || text == "" || text == `""` }

// plainText is a JSON value of a parameter as it is written in a query.
func plainText(text string) string {
	return strings.NewReplacer(`"`, "", "[", "", "]", "").Replace(text)
}

// names are the paths of v2 that a row names.
func (r fieldRow) names() []string {
	if r.v2 == "" {
		return nil
	}
	return strings.Split(r.v2, ", ")
}

// wrong says what is wrong with a row by itself; empty for nothing.
func (r fieldRow) wrong() string {
	c := claimOf(r.how)
	_, explained, _ := strings.Cut(r.how, ": ")
	switch {
	case !slices.Contains([]string{"same", "renamed", "converted", "computed", "given up"}, c.kind):
		return fmt.Sprintf("%q is no how", c.kind)
	case c.kind == "same" && r.v1 != r.v2, c.kind == "renamed" && r.v1 == r.v2:
		return "is " + c.kind + ", by its name"
	case (c.kind == "same" || c.kind == "renamed") && c.said, c.kind == "converted" && !c.said && r.v2 != "":
		return "is " + c.kind + ", and what says how is not so"
	case explained == "" && c.kind != "same" && c.kind != "renamed":
		return "is " + c.kind + ", and nothing says how"
	case (c.kind == "given up") != (r.v2 == "") && r.v1 != "items":
		return "is " + c.kind + ", of " + r.v2
	}
	return ""
}

// wrongAnswer says what is wrong with a row of an answer, as trials found it. visible is
// where v2's answer has a source; empty for nowhere.
func (r fieldRow) wrongAnswer(s *study, visible func(*spot) string) string {
	var from []string
	for _, source := range s.moves[r.v1] {
		if path := visible(source); path != "" {
			from = append(from, path)
		}
	}
	c := claimOf(r.how)
	switch {
	case !slices.Equal(from, r.names()):
		return fmt.Sprintf("is made of %v", from)
	case c.kind == "computed" || c.kind == "given up":
		return ""
	case len(s.moves[r.v1]) != 1:
		return "is made of something else too"
	}
	never := c.absent != null
	for _, t := range s.texts(s.moves[r.v1][0].path, r.v1) {
		v2, v1 := t[0], t[1]
		never = never && v2 != null
		if v2 == null && v1 != c.absent || !isEmpty(v2) && !c.fits(v1, v2) {
			return fmt.Sprintf("is %s where v2 has %s", v1, v2)
		}
	}
	if never {
		return "is of what is never null"
	}
	return ""
}

// wrongRequest says what is wrong with a row of a request, as trials found it.
func (r fieldRow) wrongRequest(s *study, v1Default, v2Default string) string {
	var to []string
	alone := true
	for _, target := range s.targets {
		if slices.ContainsFunc(s.moves[target], func(p *spot) bool { return p.path == r.v1 }) {
			to = append(to, target)
			alone = alone && len(s.moves[target]) == 1
		}
	}
	c := claimOf(r.how)
	defaults := ""
	if v1Default != v2Default {
		defaults = inCode(v1Default) + " in v1 and " + inCode(v2Default) + " in v2"
	}
	switch {
	case !slices.Equal(to, r.names()):
		return fmt.Sprintf("becomes %v", to)
	case c.kind == "computed" || c.kind == "given up":
		return ""
	case !alone:
		return "is not alone in what it becomes"
	case c.defaults != defaults && (c.defaults == "" || defaults != ""):
		return fmt.Sprintf("has the defaults %q", defaults)
	}
	for _, t := range s.texts(r.v1, to[0]) {
		v1, v2 := t[0], t[1]
		switch {
		case isEmpty(v1) && plainText(v2) != strings.TrimPrefix(c.absent, null):
			return fmt.Sprintf("left out is %s in v2", v2)
		case !isEmpty(v1) && !c.fits(v1, v2) && !(strings.Contains(r.how, "UUID") && !strings.Contains(v1, "-7000-")):
			return fmt.Sprintf("%s becomes %s", v1, v2)
		}
	}
	return ""
}

func inCode(text string) string {
	if text == "" {
		return "anything"
	}
	return "`" + text + "`"
}
