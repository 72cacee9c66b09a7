package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/itchyny/gojq"
)

// jq runs a filter with gojq, at the guides' time, on the values of a file or of in. gojq sorts
// members by their names; they are printed here in the order of jq: of the input, or of the
// filter that made them.
func (s *shell) jq(args []string, in io.Reader, out io.Writer) error {
	options := flag.NewFlagSet("jq", flag.ContinueOnError)
	options.SetOutput(io.Discard)
	text, lines := options.Bool("rR", false, ""), options.Bool("nr", false, "")
	raw, compact := options.Bool("r", false, ""), options.Bool("c", false, "")
	if err := options.Parse(args); err != nil {
		return err
	}
	filter := cmp.Or(options.Arg(0), ".")
	query, err := gojq.Parse(fmt.Sprintf("def now: %d; %s", guideTime.Unix(), filter))
	if err != nil || options.NArg() > 2 {
		return errors.Join(err, fmt.Errorf("arguments %q", args))
	}
	if name := options.Arg(1); name != "" {
		file, err := os.Open(filepath.Join(s.dir, name))
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	order, inputs := newMemberOrder(filter), []any{nil}
	switch {
	case *text:
		source, err := io.ReadAll(in)
		if err != nil {
			return err
		}
		inputs[0] = strings.TrimSpace(string(source))
	case !*lines:
		if inputs, err = order.readAll(in); err != nil {
			return err
		}
	}
	for _, input := range inputs {
		values := query.Run(input)
		for v, ok := values.Next(); ok; v, ok = values.Next() {
			if err, failed := v.(error); failed {
				return err
			}
			line, isText := v.(string)
			if !isText || !(*raw || *text || *lines) {
				value := order.print(v, true)
				if !*compact {
					if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
						return err
					}
				}
				line = string(value)
			}
			fmt.Fprintln(out, line)
		}
	}
	return nil
}

// memberOrder knows in which order jq prints the members of objects.
type memberOrder struct {
	// input has the members of each object of the input, by their sorted names, and made
	// those of each object that the filter makes.
	input, made map[string][]string
}

// madeObject matches an object that a filter makes, of fields that keep their names: {label: .label, sends}.
var madeObject = regexp.MustCompile(`\{([a-z_,.:\s]+)\}`)

func newMemberOrder(filter string) memberOrder {
	m := memberOrder{input: map[string][]string{}, made: map[string][]string{}}
	for _, found := range madeObject.FindAllStringSubmatch(filter, -1) {
		names := strings.Split(strings.Join(strings.Fields(found[1]), ""), ",")
		for i := range names {
			names[i], _, _ = strings.Cut(names[i], ":")
		}
		m.made[sortedNames(names)] = names
	}
	return m
}

func sortedNames(names []string) string {
	return strings.Join(slices.Sorted(slices.Values(names)), ",")
}

// readAll decodes values and keeps the order of the members of their objects.
func (m memberOrder) readAll(in io.Reader) (all []any, err error) {
	var text bytes.Buffer
	values := json.NewDecoder(io.TeeReader(in, &text))
	values.UseNumber()
	for err == nil {
		var v any
		if err = values.Decode(&v); err == nil {
			all = append(all, v)
		}
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	var names [][]string // of the objects that a token is in
	for tokens := jsontext.NewDecoder(&text); ; {
		token, err := tokens.ReadToken()
		if err != nil {
			return all, nil
		}
		within, n := tokens.StackIndex(tokens.StackDepth())
		switch last := len(names) - 1; {
		case token.Kind() == '{':
			names = append(names, nil)
		case token.Kind() == '}':
			m.input[sortedNames(names[last])] = names[last]
			names = names[:last]
		case within == '{' && n%2 == 1:
			names[last] = append(names[last], token.String())
		}
	}
}

// print encodes a value. Only the objects that a filter returns itself can be its own.
func (m memberOrder) print(v any, result bool) jsontext.Value {
	var parts []string
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			parts = append(parts, string(m.print(item, false)))
		}
		return jsontext.Value("[" + strings.Join(parts, ",") + "]")
	case map[string]any:
		all := sortedNames(slices.Collect(maps.Keys(v)))
		names, made := m.made[all]
		if !made || !result {
			names = m.input[all]
		}
		if len(names) != len(v) {
			panic(fmt.Sprintf("the order of %v is not known", v))
		}
		for _, name := range names {
			parts = append(parts, fmt.Sprintf("%q:%s", name, m.print(v[name], false)))
		}
		return jsontext.Value("{" + strings.Join(parts, ",") + "}")
	}
	encoded, err := gojq.Marshal(v)
	if err != nil {
		panic(err)
	}
	return encoded
}
