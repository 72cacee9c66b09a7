package main

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"partnerapi/docs"
	"partnerapi/domain"
	"partnerapi/platform/site"
	"partnerapi/v2/op"
)

var (
	fenced  = regexp.MustCompile("(?ms)^```[^\n]*\n(.*?)^```")
	spanned = regexp.MustCompile("`([^`\n]+)`")
	// ofNumbers are the lines about commands of version 1.
	ofNumbers = regexp.MustCompile(`(?m)^.*(idmap|partnerapi v1 |partnerapi parity).*\n`)
	// others are lines of programs, and of SQL, that take the name as an argument.
	others  = regexp.MustCompile(`(?m)^(install|tar|systemctl|kubectl create|helm|ALTER DEFAULT PRIVILEGES) .*\n`)
	invoked = regexp.MustCompile(`(?:^|[\s(/])partnerapi((?: [^\s;&<>()#]+)+)`)
)

// TestDocumentedCommands wants every command and every flag of this program that
// README.md and docs/operating.md name to be there.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	of := model(t)
	flags := map[string]bool{"help": true}
	eachFlag(t, of, func(f *kong.Flag) { flags[f.Name] = true })
	for name, atLeast := range map[string]int{"../../README.md": 3, "../../docs/operating.md": 10} {
		read, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text := string(read)
		if !older() { // the commands of version 1
			text = ofNumbers.ReplaceAllString(text, "")
		}
		lines := 0
		check := func(line string, words string) {
			lines++
			if wrong := mentioned(of, strings.Fields(words)); wrong != "" {
				t.Errorf("%s: %s: %s", name, line, wrong)
			}
		}
		for _, block := range fenced.FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(others.ReplaceAllString(strings.ReplaceAll(block[1], "\\\n", " "), "")) {
				for _, m := range invoked.FindAllStringSubmatch(quoteless(line), -1) {
					check(strings.TrimSpace(line), upToPipe(m[1]))
				}
			}
		}
		for _, span := range spanned.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			code := quoteless(span[1])
			first, rest, _ := strings.Cut(code, " ")
			switch {
			case strings.HasPrefix(code, "--"):
				flag, _, _ := strings.Cut(strings.TrimPrefix(first, "--"), "=")
				if !flags[flag] {
					t.Errorf("%s: there is no flag %s", name, first)
				}
			case first == "partnerapi" || strings.HasSuffix(first, "/partnerapi"):
				check(code, rest)
			case rest != "" && hasCommand(of.Node, first):
				check(code, code)
			}
		}
		if lines < atLeast {
			t.Errorf("%s: only %d commands were found", name, lines)
		}
	}
}

// TestDocumentedRetention wants the table of what is kept to be that of the code.
func TestDocumentedRetention(t *testing.T) {
	t.Parallel()
	text := fileText(t, "docs/operating.md")
	const day = 24 * time.Hour
	for what, life := range map[string]time.Duration{
		"audit entries": domain.AuditLife, "events": domain.EventLife,
		"webhook deliveries": domain.DeliveryLife, "directory sync runs": domain.SyncRunLife,
		"reports and their files": domain.ReportLife, "links to reports": domain.ReportLinkLife,
		"responses kept for `Idempotency-Key`": domain.OutcomeLife, "classifications of reported emails": domain.ClassificationLife,
		"waiting emails that cannot be delivered": domain.MailLife, "open invites": domain.InviteLife,
	} {
		said := fmt.Sprintf("%d days", life/day)
		if life == day {
			said = "24 hours"
		}
		if !strings.Contains(text, "\n| "+what+" | "+said) {
			t.Errorf("docs/operating.md does not say that %s are kept for %s", what, said)
		}
	}
}

var quotes = regexp.MustCompile(`'[^']*'|"[^"]*"`)

// quoteless is a line with its quoted words in one piece.
func quoteless(line string) string { return quotes.ReplaceAllString(line, "QUOTED") }

// upToPipe is what comes before the next command of a pipe.
func upToPipe(words string) string {
	before, _, _ := strings.Cut(words, " | ")
	return before
}

var pagePath = regexp.MustCompile(`/docs/[a-z0-9/-]+`)

// TestHelpNamesPages wants every page that the help of a command names to be served.
func TestHelpNamesPages(t *testing.T) {
	t.Parallel()
	config, err := pagesOf(op.Latest)
	if err != nil {
		t.Fatal(err)
	}
	paths, err := site.New(config).Paths()
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	err = kong.Visit(model(t), func(node kong.Visitable, next kong.Next) error {
		text := ""
		switch n := node.(type) {
		case *kong.Node:
			text = n.Help + " " + n.Detail
		case *kong.Flag:
			text = n.Help
		}
		for _, page := range pagePath.FindAllString(text, -1) {
			if named++; !slices.Contains(paths, page) {
				t.Errorf("%q names %s, which is no page", text, page)
			}
		}
		return next(nil)
	})
	if err != nil || named < 2 {
		t.Errorf("%d pages are named: %v", named, err)
	}
}

// TestSearchesCompare: no guide takes the first of what q finds for the one that is meant, as
// it finds parts of names and addresses.
func TestSearchesCompare(t *testing.T) {
	t.Parallel()
	for _, name := range guideOrder() {
		source, err := fs.ReadFile(docs.Guides(), name+".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range examplesOf(t, name+".md", string(source)) {
			for line := range strings.Lines(strings.ReplaceAll(e.script, "\\\n", " ")) {
				if searched.MatchString(line) && strings.Contains(line, ".data[0]") {
					t.Errorf("%s:%d: %s", name, e.line, line)
				}
			}
		}
	}
}

var searched = regexp.MustCompile(`[?&]q=`)
