package site

import (
	"html/template"
	"regexp"
	"slices"
	"strings"
	"time"
)

// served is what pages say of the service beside its address, which does not depend on
// who asks.
type served struct {
	// demo says that the keys of the demonstration are valid.
	demo bool
	// notice is what the Notice says; empty for nothing.
	notice template.HTML
	// days are how many days after SampleDay it is.
	days int
}

// Notice is said at the head of the start page, of /docs, of a reference and of some
// guides.
type Notice struct {
	// Reference and Guides are their names.
	Reference string
	Guides    []string
	// Text returns what is to be said at a request; empty for nothing.
	Text func() template.HTML
}

// noticeMark stands in the sources of pages for the notice.
const noticeMark = "<!-- notice -->"

// noticed reports whether the notice is on a page.
func (b *builder) noticed(p page) bool {
	return b.Notice.Text != nil && (p.Path == "/" || p.Path == "/docs" || p.Section == b.Notice.Reference ||
		slices.ContainsFunc(b.Notice.Guides, func(name string) bool { return b.markdown.guides[name] == p.Path }))
}

// SampleBase stands in the sources of pages for the service's address. So the guides
// can be followed from the repository too, on a demonstration.
const SampleBase = "http://127.0.0.1:8080"

// sampleKeys stand in the sources of pages for keys, and are what pages show in the
// place of them, in pairs, where they are not valid.
var sampleKeys = []string{
	"pk_demo_all", "YOUR_API_KEY", "pk_demo_readonly", "YOUR_READ_ONLY_KEY", "pk_demo_subset", "YOUR_LIMITED_KEY",
	"pk_demo", "YOUR_KEY",
}

// SampleDay is the day on which the samples of guides were made. What is served of them has
// dates as if that were today: what was to come is still to come then.
var SampleDay = time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC)

// dates are those of samples, but for times of no meaning.
var dates = regexp.MustCompile(`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}`)

// daysAt is how many days after SampleDay a time is.
func daysAt(now time.Time) int { return int(now.Sub(SampleDay).Hours() / 24) }

// samples is in the sources that name the service.
var samples = regexp.MustCompile("pk_demo|" + noticeMark + "|" + regexp.QuoteMeta(SampleBase))

// fill puts what is served, and an address, into a source.
func (s served) fill(source []byte, base string) []byte {
	notice := ""
	if s.notice != "" {
		notice = `<div class="notice" role="note" aria-label="Notice">` + string(s.notice) + "</div>"
	}
	pairs := []string{SampleBase, base, noticeMark, notice}
	if !s.demo {
		pairs = append(pairs, sampleKeys...)
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(s.date(source))))
}

// date moves the dates of samples.
func (s served) date(source []byte) []byte {
	if s.days == 0 {
		return source
	}
	return dates.ReplaceAllFunc(source, func(date []byte) []byte {
		day, err := time.Parse(time.DateOnly, string(date))
		if err != nil {
			return date
		}
		return []byte(day.AddDate(0, 0, s.days).Format(time.DateOnly))
	})
}

// Text is the source of a guide for a service at an address, without a slash at its
// end, which accepts the keys of the demonstration or not, with the dates of now.
func Text(source []byte, address string, demo bool, now time.Time) []byte {
	return served{demo: demo, days: daysAt(now)}.fill(source, address)
}
