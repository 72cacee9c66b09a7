package main

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// runJQ is the part of jq that the guides use: paths, lists of them, pipes, objects of
// members ({id, name}) and select(.id == "x"), with -r and -c. Members keep their order. Of
// filters of times it has two.
func runJQ(args []string, input string) (string, error) {
	switch {
	case len(args) == 2 && args[0] == "-rR" && args[1] == `strptime("%a, %d %b %Y %H:%M:%S GMT") | mktime - 60 | todate`:
		at, err := time.Parse(http.TimeFormat, strings.TrimSpace(input))
		return at.Add(-time.Minute).Format(time.RFC3339) + "\n", err
	case len(args) == 2 && args[0] == "-nr" && args[1] == `now - 364 * 86400 | strftime("%Y-%m-%dT00:00:00Z")`:
		return guideTime.AddDate(0, 0, -364).Format("2006-01-02T00:00:00Z") + "\n", nil
	}
	raw, compact, filter := false, false, ""
	for _, arg := range args {
		switch {
		case arg == "-r":
			raw = true
		case arg == "-c":
			compact = true
		case strings.HasPrefix(arg, "-") || filter != "":
			return "", fmt.Errorf("jq with %s cannot be run here", arg)
		default:
			filter = arg
		}
	}
	values, err := query(filter, []jsontext.Value{jsontext.Value(input)})
	if err != nil {
		return "", fmt.Errorf("jq %s: %w", filter, err)
	}
	var out strings.Builder
	for _, v := range values {
		if raw && v.Kind() == '"' {
			var text string
			if err := json.Unmarshal(v, &text); err != nil {
				return "", err
			}
			out.WriteString(text + "\n")
			continue
		}
		v = slices.Clone(v)
		form := func() error { return v.Indent(jsontext.WithIndent("  ")) }
		if compact {
			form = func() error { return v.Compact() }
		}
		if err := form(); err != nil {
			return "", fmt.Errorf("the input is no JSON: %w", err)
		}
		out.WriteString(strings.TrimSpace(string(v)) + "\n")
	}
	return out.String(), nil
}

// query runs a filter on values.
func query(filter string, values []jsontext.Value) (out []jsontext.Value, err error) {
	if first, rest, ok := strings.Cut(filter, " | "); ok {
		if values, err = query(first, values); err != nil {
			return nil, err
		}
		return query(rest, values)
	}
	if strings.TrimSpace(filter) == "" {
		return values, nil
	}
	if found := selected.FindStringSubmatch(filter); found != nil {
		return slices.DeleteFunc(values, func(v jsontext.Value) bool {
			got, err := follow(found[1], v)
			return err != nil || string(got[0]) != found[2]
		}), nil
	}
	for _, v := range values {
		for _, part := range parts.FindAllString(filter, -1) {
			found, err := pick(strings.TrimSpace(part), v)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// selected is what keeps the values in which a member is a text.
var selected = regexp.MustCompile(`^select\((\.[a-z_]+) == ("[^"]*")\)$`)

// parts are those between the commas of a filter: paths, and objects.
var parts = regexp.MustCompile(`\{[^}]*\}|[^,{]+`)

// pick returns what a path or an object of members takes from a value.
func pick(part string, v jsontext.Value) ([]jsontext.Value, error) {
	inner, ok := strings.CutPrefix(part, "{")
	if !ok {
		return follow(part, v)
	}
	made, err := members(strings.TrimSuffix(inner, "}"), v)
	return []jsontext.Value{made}, err
}

// members makes an object of some of a value's members.
func members(names string, v jsontext.Value) (jsontext.Value, error) {
	var out strings.Builder
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		found, err := follow("."+name, v)
		if err != nil {
			return nil, err
		}
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q:%s", name, found[0])
	}
	return jsontext.Value("{" + out.String() + "}"), nil
}

var step = regexp.MustCompile(`^(?:\.([A-Za-z_][A-Za-z0-9_]*)|\.?\["([^"]+)"\]|\.?\[([0-9]*)\])`)

// follow returns what lies at a path: .data[0].id, .data[].
func follow(path string, v jsontext.Value) ([]jsontext.Value, error) {
	if path == "" || path == "." {
		return []jsontext.Value{v}, nil
	}
	found := step.FindStringSubmatch(path)
	if found == nil {
		return nil, fmt.Errorf("%s is no path", path)
	}
	rest := path[len(found[0]):]
	if name := found[1] + found[2]; name != "" {
		object := map[string]jsontext.Value{}
		if err := json.Unmarshal(v, &object); err != nil {
			return nil, err
		}
		member, ok := object[name]
		if !ok {
			return nil, fmt.Errorf("there is no %s", name)
		}
		return follow(rest, member)
	}
	var items, out []jsontext.Value
	if err := json.Unmarshal(v, &items); err != nil {
		return nil, err
	}
	if found[3] != "" {
		i, err := strconv.Atoi(found[3])
		if err != nil || i >= len(items) {
			return nil, fmt.Errorf("there is no item %s", found[3])
		}
		items = items[i : i+1]
	}
	for _, item := range items {
		more, err := follow(rest, item)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

func TestJQ(t *testing.T) {
	t.Parallel()
	const input = `{"b":[{"id":"x","n":1.50},{"id":"y","n":null}],"a":{"z":true,"y":[]}}`
	for _, c := range []struct{ args, want string }{
		{"-r .b[0].id", "x\n"},
		{"-c .b[].n, .a", "1.50\nnull\n{\"z\":true,\"y\":[]}\n"},
		{"-c .b[] | {n, id}", "{\"n\":1.50,\"id\":\"x\"}\n{\"n\":null,\"id\":\"y\"}\n"},
		{`.a["z"]`, "true\n"},
		{`-r .b[] | select(.id == "y") | .id`, "y\n"},
		{"-c {a}, .b[0].id", "{\"a\":{\"z\":true,\"y\":[]}}\n\"x\"\n"},
		{".a", "{\n  \"z\": true,\n  \"y\": []\n}\n"},
	} {
		option, filter, ok := strings.Cut(c.args, " ")
		args := []string{option, filter}
		if !ok {
			args = []string{option}
		}
		if got, err := runJQ(args, input); err != nil || got != c.want {
			t.Errorf("jq %s: %q, %v", c.args, got, err)
		}
	}
	for _, wrong := range []string{"-x", ".c", ".b[9]", "map(.)"} {
		if got, err := runJQ([]string{wrong}, input); err == nil {
			t.Errorf("jq %s: %q", wrong, got)
		}
	}
}
