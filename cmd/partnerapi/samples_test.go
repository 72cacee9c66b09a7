package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"partnerapi/db/dbtest"
	"partnerapi/docs"
)

// tabOrder are the languages of code blocks that are tabs, in their order.
var tabOrder = []string{"sh", "python", "js", "csharp", "powershell", "go", "php", "ruby"}

// sessions are the languages whose tabs beside commands are run.
var sessions = map[string]bool{"python": true, "js": true}

// marks are the statements that print the end of a tab's output.
var marks = map[string]string{"python": `print("\0")`, "js": `console.log("\0");`}

// runSession runs the tabs of a guide in a language as one program, on a demonstration of its own, and compares what
// each prints with the guide. White space does not count: jq indents in its own way. With -update only commands are run.
func runSession(t *testing.T, name, language string, all []example) {
	t.Helper()
	examples := slices.DeleteFunc(slices.Clone(all), func(e example) bool { return !e.session || e.language != language })
	if len(examples) == 0 || *update {
		return
	}
	var code strings.Builder
	for _, e := range examples {
		code.WriteString(e.script + marks[language] + "\n")
	}
	s := shell{base: guideBase, address: guideService(t, dbtest.URL(t, guideSchema), ""), dir: t.TempDir()}
	printed, err := s.show(example{interpreter: languages[language], script: code.String()})
	if errors.Is(err, errMissing) {
		t.Logf("%s: %v", name, err)
		return
	}
	if err != nil {
		t.Errorf("%s in %s: %v", name, language, err)
		return
	}
	for i, got := range strings.Split(strings.TrimSuffix(printed, "\x00\n"), "\x00\n") {
		if e := examples[i]; e.output != "" && !shows(squeezed(e.output), squeezed(got)) {
			t.Errorf("%s:%d: the guide shows\n%sand the sample prints\n%s", name, e.line, e.output, got)
		}
	}
}

// squeezed returns a text without white space.
func squeezed(text string) string { return strings.Join(strings.Fields(text), "") }

// TestTabs verifies that tabs have one order in all guides, and that the tabs of a guide send the same requests: method,
// path, body and headers. Requests that the guide sent before do not count. That holds for languages that the tests
// cannot run, too. All guides have the same function that sends them.
func TestTabs(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(docs.Guides(), "*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked, helpers := 0, map[string]string{}
	for _, name := range names {
		source, err := fs.ReadFile(docs.Guides(), name)
		if err != nil {
			t.Fatal(err)
		}
		readers := map[string]*requestReader{}
		for _, tabs := range tabsOf(string(source)) {
			first := tabs[0]
			at := fmt.Sprintf("%s:%d", name, first.line)
			order := func(b codeBlock) int { return slices.Index(tabOrder, b.language) }
			if !slices.IsSortedFunc(tabs, func(a, b codeBlock) int { return order(a) - order(b) }) {
				t.Errorf("%s: the tabs are not in the order of %v", at, tabOrder)
			}
			if !slices.ContainsFunc(tabs, func(b codeBlock) bool { return b.language == "csharp" }) {
				continue
			}
			var want []string
			for i, b := range tabs[:min(len(tabs), 5)] {
				if i > 0 && tabs[i-1].language == "powershell" {
					break
				}
				if readers[b.language] == nil {
					readers[b.language] = &requestReader{language: b.language, texts: map[string]string{}}
				}
				got := readers[b.language].read(t, b.text)
				if i == 0 {
					want = got
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: %s sends\n%s\nand %s\n%s", at, b.language, strings.Join(got, "\n"), first.language, strings.Join(want, "\n"))
				}
				helper := function.FindString(b.text)
				if known := helpers[b.language]; known != "" && helper != "" && helper != known {
					t.Errorf("%s: the function of %s that sends requests is not that of other guides", at, b.language)
				}
				helpers[b.language] = cmp.Or(helper, helpers[b.language])
				checked++
			}
		}
	}
	if checked < 150 {
		t.Errorf("%d samples were compared", checked)
	}
}

// codeBlock is a code block of a guide.
type codeBlock struct {
	line           int
	language, text string
}

// fencedBlock matches a code block and the white space after it.
var fencedBlock = regexp.MustCompile("(?ms)^```(\\w*)[^\n]*\n(.*?)^```\n\\s*")

// tabsOf returns the groups of adjacent code blocks in the languages of tabs.
func tabsOf(source string) (groups [][]codeBlock) {
	end := -1
	for _, m := range fencedBlock.FindAllStringSubmatchIndex(source, -1) {
		b := codeBlock{strings.Count(source[:m[0]], "\n") + 1, source[m[2]:m[3]], source[m[4]:m[5]]}
		switch {
		case !slices.Contains(tabOrder, b.language):
			continue
		case m[0] == end && b.language != "sh":
			groups[len(groups)-1] = append(groups[len(groups)-1], b)
		default:
			groups = append(groups, []codeBlock{b})
		}
		end = m[1]
	}
	return slices.DeleteFunc(groups, func(g []codeBlock) bool { return len(g) == 1 })
}

// requestReader reads the requests of samples in a language. It knows the variables whose value is a text, and omits
// requests that it has read before.
type requestReader struct {
	language string
	texts    map[string]string
	seen     []string
}

// read returns the requests of a sample.
func (r *requestReader) read(t *testing.T, text string) (list []string) {
	t.Helper()
	found := r.calls(text)
	if r.language == "sh" {
		found = r.commands(t, text)
	}
	for _, request := range found {
		if !slices.Contains(r.seen, request) {
			r.seen = append(r.seen, request)
			list = append(list, request)
		}
	}
	return list
}

var (
	// aText matches an assignment of a string to a variable.
	aText = regexp.MustCompile("(?m)^(?:const |let |var |\\$)?(\\w+) =\\s+[f$]?[\"'`]([^\"'`\\n]+)[\"'`];?$")
	// aCall matches the beginning of a request, but not the declarations of the functions.
	aCall = regexp.MustCompile(`\b(?:call\((?:method)?|Call\((?:string)?|Invoke-Api[ (](?:\$Method)?)`)
	// function matches the function that sends the requests of a guide.
	function = regexp.MustCompile(`(?s)def call\(.*?json\.load\(error\)\n|(?://|#) Sends a request and.*?\n}\n`)
	// reference matches a variable in a string.
	reference = regexp.MustCompile(`\$?\{(\w+)\}|\$(\w+)`)
	// token matches a string, a name, a variable or a number.
	token = regexp.MustCompile("[f$]?\"([^\"]*)\"|`([^`]*)`|'([^']*)'|\\$?(\\w+)")
)

// calls returns the requests of a program.
func (r *requestReader) calls(text string) (list []string) {
	for _, m := range aText.FindAllStringSubmatch(text, -1) {
		r.texts[strings.ToLower(m[1])] = m[2]
	}
	for _, at := range aCall.FindAllStringIndex(text, -1) {
		if begin := text[at[0]:at[1]]; strings.HasSuffix(begin, "(") || strings.HasSuffix(begin, " ") {
			list = append(list, r.normal(arguments(text[at[1]:], strings.HasSuffix(begin, "("))))
		}
	}
	return list
}

// arguments returns the arguments of a call from their beginning to their end: its parenthesis, or the end of a command.
func arguments(text string, parenthesis bool) string {
	depth, quote := 0, rune(0)
	for i, c := range text {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case strings.ContainsRune("\"'`", c):
			quote = c
		case strings.ContainsRune("([{", c):
			depth++
		case strings.ContainsRune(")]}", c):
			depth--
		}
		if depth < 0 || depth == 0 && !parenthesis && quote == 0 && (c == '\n' || c == '|') {
			return text[:i]
		}
	}
	return text
}

// normal returns the strings, names, numbers and variables of arguments, in their order and without their notation.
func (r *requestReader) normal(arguments string) string {
	var list []string
	for _, m := range token.FindAllStringSubmatch(arguments, -1) {
		switch word := strings.ToLower(m[4]); {
		case slices.Contains([]string{"new", "none", "null", "undefined"}, word):
		case word != "" && r.texts[word] != "":
			list = append(list, r.expanded(r.texts[word]))
		case word != "":
			list = append(list, word)
		default:
			list = append(list, r.expanded(m[1]+m[2]+m[3]))
		}
	}
	if len(list) > 0 {
		list[0] = strings.ToLower(list[0])
	}
	return strings.Join(list, " ")
}

// expanded returns a string with the names of its variables, or their texts.
func (r *requestReader) expanded(text string) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.ToLower(strings.Trim(found, "${}"))
		if known := r.texts[name]; known != "" {
			return r.expanded(known)
		}
		return name
	})
}

// commands returns the requests of curl in commands.
func (r *requestReader) commands(t *testing.T, script string) (list []string) {
	t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		t.Fatal(err)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		for _, a := range call.Assigns {
			if value := wordText(a.Value); value != "" {
				r.texts[strings.ToLower(a.Name.Value)] = value
			}
		}
		if len(call.Args) > 0 && wordText(call.Args[0]) == "curl" {
			if request := r.curl(call.Args[1:]); request != "" {
				list = append(list, request)
			}
		}
		return true
	})
	return list
}

// curl returns the request of curl's arguments in the form of normal, empty for a URL that another response has.
func (r *requestReader) curl(words []*syntax.Word) string {
	method, path, body := "", "", ""
	var headers []string
	for i := 0; i < len(words); i++ {
		switch word := wordText(words[i]); word {
		case "-s", "-i":
		case "-H", "-X", "-d", "-o", "-sf":
			i++
			switch value := wordText(words[i]); word {
			case "-H":
				if name, value, _ := strings.Cut(value, ": "); value != "pk_demo_all" {
					headers = append(headers, name, value)
				}
			case "-X":
				method = value
			case "-d":
				body = value
			}
		default:
			path = word
		}
	}
	if method == "" && body == "" {
		method = "GET"
	} else if method == "" {
		method = "POST"
	}
	path, ok := strings.CutPrefix(path, guideBase)
	if !ok {
		return ""
	}
	list := []string{strings.ToLower(method), r.expanded(path)}
	if fields := r.normal(body); fields != "" {
		list = append(list, fields)
	}
	return strings.Join(append(list, headers...), " ")
}

// wordText returns a word with its variables in the notation $NAME, and nothing for what a command prints.
func wordText(w *syntax.Word) string {
	var out strings.Builder
	if w == nil {
		return ""
	}
	syntax.Walk(w, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Lit:
			out.WriteString(strings.ReplaceAll(n.Value, "\\\n", ""))
		case *syntax.SglQuoted:
			out.WriteString(n.Value)
		case *syntax.ParamExp:
			out.WriteString("${" + n.Param.Value + "}")
			return false
		case *syntax.CmdSubst, *syntax.ArithmExp:
			return false
		}
		return true
	})
	return out.String()
}
