package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
	"time"

	"partnerapi/v1compat/usage"
)

//go:embed v1_status.html
var statusPage string

//go:embed v1_status.css
var statusStyle string

// pageTemplate makes the page. Its functions write times and numbers as the command
// does.
var pageTemplate = template.Must(template.New("status").Funcs(template.FuncMap{
	"moment":  func(t time.Time) string { return moment(&t) },
	"day":     dayOf,
	"class":   func(v usage.Verdict) string { return strings.ReplaceAll(string(v), " ", "-") },
	"join":    func(list []string) string { return strings.Join(list, ", ") },
	"grouped": func(n int64) string { return grouped(n) },
	"or":      func(a, b string) string { return cmp.Or(a, b) },
}).Parse(statusPage))

// pageData is what the page shows.
type pageData struct {
	Style  template.CSS
	Policy string
	Now    time.Time
	Days   int
	// Number is the days left, or "" where the words say all; Unit is what it counts.
	Number, Unit string
	Heading      []string
	// Nobody is said where there are no Keys.
	Nobody   string
	Verdicts []verdictCount
	Chart    chart
	Keys     []pageKey
	ByDay    []usage.Day // the newest first
}

type verdictCount struct {
	Verdict usage.Verdict
	Keys    int
}

type pageKey struct {
	usage.Key
	Shown, Label, Phase string
	Chart               chart
}

// writePage writes the page to a file: first to another one beside it, so that the
// file is never half written.
func (st *status) writePage(name string) error {
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, st.page()); err != nil {
		return fmt.Errorf("make the page: %w", err)
	}
	_, err := writeWhole(name, func(to *bufio.Writer) error {
		_, err := to.Write(page.Bytes())
		return err
	})
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func (st *status) page() pageData {
	digest := sha256.Sum256([]byte(statusStyle))
	out := pageData{
		Style: template.CSS(statusStyle), Now: st.now, Days: st.days, Heading: append(st.heading(), st.summary()),
		Nobody: st.nobody(),
		Policy: "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
			"'; base-uri 'none'; form-action 'none'",
		Chart: newChart(st.use.Days, wide),
	}
	_, over := st.state.Ended()
	if _, announced := st.state.Announcement(); announced && !over {
		left := st.daysLeft()
		out.Number, out.Unit = fmt.Sprint(max(left, -left)), "days left"
		switch {
		case left == 1:
			out.Unit = "day left"
		case left < 0:
			out.Unit = "days past its sunset"
		}
	}

	counts := map[usage.Verdict]int{}
	for _, k := range st.use.Keys {
		counts[k.Verdict]++
		out.Keys = append(out.Keys, pageKey{
			Key: k, Shown: prefixOf(k), Label: nameOf(k), Phase: st.phaseText(k), Chart: newChart(k.Days, small),
		})
	}
	for _, v := range usage.Verdicts {
		out.Verdicts = append(out.Verdicts, verdictCount{v, counts[v]})
	}
	for i := range st.use.Days {
		out.ByDay = append(out.ByDay, st.use.Days[len(st.use.Days)-1-i])
	}
	return out
}

// grouped is a number with a comma between thousands.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
