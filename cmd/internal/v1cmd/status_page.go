package v1cmd

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"partnerapi/cmd/internal/output"
	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

//go:embed status.html
var statusPage string

//go:embed status.css
var statusStyle string

// pageTemplate makes the page of a status. Its functions write times and numbers as the
// command does.
var pageTemplate = template.Must(template.New("status").Funcs(template.FuncMap{
	"moment":  func(t domain.Time) string { return output.Moment(&t.Time) },
	"day":     func(t domain.Time) string { return DayOf(t.Time) },
	"class":   func(v usage.Verdict) string { return strings.ReplaceAll(string(v), " ", "-") },
	"join":    func(list []string) string { return strings.Join(list, ", ") },
	"grouped": grouped,
	"style":   func() template.CSS { return template.CSS(statusStyle) },
	"policy": func() string {
		digest := sha256.Sum256([]byte(statusStyle))
		return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
			"'; base-uri 'none'; form-action 'none'"
	},
	"verdicts": func() []usage.Verdict { return usage.Verdicts },
	"wide":     func(days []usage.Day) chart { return newChart(days, wide) },
	"small":    func(days []usage.Day) chart { return newChart(days, small) },
	"newest": func(days []usage.Day) []usage.Day {
		days = slices.Clone(days)
		slices.Reverse(days)
		return days
	},
}).Parse(statusPage))

// Left is the days that are left, and what they are; empty where the words say all.
func (st *Status) Left() []string {
	if st.Announcement == nil || st.EndedAt != nil {
		return nil
	}
	left, unit := st.Announcement.DaysLeft, "days left"
	switch {
	case left == 1:
		unit = "day left"
	case left < 0:
		unit = "days past its sunset"
	}
	return []string{fmt.Sprint(max(left, -left)), unit}
}

// Are is how many keys have a verdict.
func (st *Status) Are(v usage.Verdict) (n int) {
	for _, k := range st.Keys {
		if k.Verdict == v {
			n++
		}
	}
	return n
}

// WritePage writes the page to a file: first to another one beside it, so that the
// file is never half written.
func (st *Status) WritePage(name string) error {
	_, err := output.WriteFile(name, func(to *bufio.Writer) error { return pageTemplate.Execute(to, st) })
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// grouped is a number with a comma between thousands.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
