package site

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"partnerapi/domain"
)

// Documents serves texts that contain the service's address. A document is compressed once, in pieces between the
// places of the address, so that callers who invent addresses cause no compression.
type Documents struct {
	// PublicURL is the public address of the service, without a trailing slash. If it is empty, documents contain the
	// address of the request's Host, or Address if the Host is invalid.
	PublicURL, Address string
	// SupportURL is the web or email address where partners get help; empty for none.
	SupportURL string
	// Clock is the clock; nil is the machine's.
	Clock domain.Clock
}

// Handler serves a document, whose source has SampleBase as the service's address. The first request encodes it. An
// encoding error is a programming error, and panics.
func (d *Documents) Handler(contentType string, encode func() ([]byte, error)) http.Handler {
	return d.handler(contentType, encode, func() int { return 0 }) // dates are not shifted
}

// DatedHandler is Handler for a document with the dates of samples, which it shifts as if SampleDay were today.
func (d *Documents) DatedHandler(contentType string, encode func() ([]byte, error)) http.Handler {
	return d.handler(contentType, encode, func() int { return daysSinceSample(d.clock().Now()) })
}

// handler implements Handler and DatedHandler. It shifts dates by days, and keeps the keys of samples: demo is true.
func (d *Documents) handler(contentType string, encode func() ([]byte, error), days func() int) http.Handler {
	made := sync.OnceValue(func() *content {
		source, err := encode()
		if err != nil {
			panic(err)
		}
		return newContent(contentType, revalidated, source)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made().serve(w, r, http.StatusOK, servedState{demo: true, days: days()}, values{base: d.BaseOf(r)})
	})
}

// Root returns the path of the public address, with which links begin, and which a proxy removes from requests. It is
// empty if there is no path.
func (d *Documents) Root() string {
	public, err := url.Parse(d.PublicURL)
	if err != nil {
		return ""
	}
	return strings.TrimRight(public.EscapedPath(), "/")
}

// rootedLinks matches the beginning of links to paths of the service.
var rootedLinks = regexp.MustCompile(` (?:href|src|data-(?:document|index|library))="/`)

// addRoot returns HTML with the root at the beginning of all paths in links, before their first slash.
func (d *Documents) addRoot(html []byte) []byte {
	root := template.HTMLEscapeString(d.Root())
	return rootedLinks.ReplaceAllFunc(html, func(found []byte) []byte { // found ends with that slash
		return slices.Concat(found[:len(found)-1], []byte(root), found[len(found)-1:])
	})
}

// clock returns Clock or, if that is nil, the machine's clock.
func (d *Documents) clock() domain.Clock {
	if d.Clock == nil {
		return domain.SystemClock{}
	}
	return d.Clock
}

// hosts matches a valid Host: a name or an IP address, with an optional port.
var hosts = regexp.MustCompile(`^([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)

// BaseOf returns the service's address for a request: PublicURL, otherwise that of the request's Host, or Address if
// the Host is invalid. It ignores X-Forwarded-Host and similar headers.
func (d *Documents) BaseOf(r *http.Request) string {
	switch {
	case d.PublicURL != "":
		return d.PublicURL
	case !hosts.MatchString(r.Host):
		return d.Address
	case r.TLS != nil:
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// values replace requestMarks in a content, and may differ at each request.
type values struct {
	base    string // the address of the service
	nearest string // the link to the nearest page, as HTML
}

// nearestMark is the placeholder of the link to the nearest page in the source of the page for unknown paths.
const nearestMark = "<!-- nearest -->"

// requestMarks matches the placeholders of values.
var requestMarks = regexp.MustCompile(regexp.QuoteMeta(SampleBase) + "|" + nearestMark)

// of returns the value in place of a mark.
func (v values) of(mark string) string {
	if mark == nearestMark {
		return v.nearest
	}
	return v.base
}

// edition is a content for one servedState, in pieces.
type edition struct {
	served servedState
	pieces []piece
	hash   string
}

// piece is a part of a content, with the mark that precedes it; empty for the first. deflated is the text in blocks of
// DEFLATE that end with a byte, and refer to no other piece.
type piece struct {
	mark           string
	text, deflated []byte
}

// editionOf returns the edition for a state. It keeps only the edition for the last state.
func (c *content) editionOf(s servedState) *edition {
	if last := c.last.Load(); last != nil && last.served == s {
		return last
	}
	text := s.fill(c.source, SampleBase) // the address stays SampleBase, which is a mark
	made := &edition{served: s, hash: hashOf(text), pieces: piecesOf(text)}
	c.last.Store(made)
	return made
}

// piecesOf splits a text at its requestMarks, and compresses the pieces.
func piecesOf(text []byte) (list []piece) {
	w, err := flate.NewWriter(nil, flate.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	add := func(mark string, text []byte) {
		var out bytes.Buffer
		w.Reset(&out)
		_, err := w.Write(text)
		if err = errors.Join(err, w.Flush()); err != nil {
			panic(err) // a buffer takes everything
		}
		list = append(list, piece{mark, text, out.Bytes()})
	}
	mark, from := "", 0
	for _, at := range requestMarks.FindAllIndex(text, -1) {
		add(mark, text[from:at[0]])
		mark, from = string(text[at[0]:at[1]]), at[1]
	}
	add(mark, text[from:])
	return list
}

// etag returns the ETag of the body with values.
func (e *edition) etag(v values) string {
	return etagOf(hashOf([]byte(e.hash + v.base + "\x00" + v.nearest)))
}

// plain returns the body with values, in parts that are not copied.
func (e *edition) plain(v values) (body [][]byte) {
	for _, p := range e.pieces {
		if p.mark != "" {
			body = append(body, []byte(v.of(p.mark)))
		}
		body = append(body, p.text)
	}
	return body
}

// gzipHeader begins a gzip file without a name and a time (RFC 1952).
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff}

// gzipped returns the body with values in gzip, in parts. The pieces are as they were compressed; values stand between
// them in stored blocks (RFC 1951, section 3.2.4), of at most 65,535 bytes.
func (e *edition) gzipped(v values) [][]byte {
	body, sum, size := [][]byte{gzipHeader}, uint32(0), 0
	stored := map[string][]byte{}
	for _, p := range e.pieces {
		if p.mark != "" {
			value := v.of(p.mark)
			if stored[p.mark] == nil {
				n := uint16(len(value))
				block := binary.LittleEndian.AppendUint16([]byte{0}, n)
				stored[p.mark] = append(binary.LittleEndian.AppendUint16(block, ^n), value...)
			}
			body = append(body, stored[p.mark])
			sum, size = crc32.Update(sum, crc32.IEEETable, []byte(value)), size+len(value)
		}
		body = append(body, p.deflated)
		sum, size = crc32.Update(sum, crc32.IEEETable, p.text), size+len(p.text)
	}
	end := binary.LittleEndian.AppendUint32([]byte{1, 0, 0, 0xff, 0xff}, sum) // after the last block, which is empty
	return append(body, binary.LittleEndian.AppendUint32(end, uint32(size)))
}

// servedState holds the values in pages that depend on the service, other than its address. It does not depend on the
// caller.
type servedState struct {
	demo   bool          // the keys of the demonstration are valid
	notice template.HTML // the text of the Notice; empty for none
	days   int           // the number of days since SampleDay
	header *brandedHeader
}

// Notice is what the service tells its readers: a text at the top of the start page, of /docs, of a reference and of
// some guides, and entries of the changelog.
type Notice struct {
	// Reference and Guides are the names of the pages that show it.
	Reference string
	Guides    []string
	// Text returns the notice for a request; empty for none.
	Text func() template.HTML
	// Changes returns the entries for a request, beside those of Config; nil is a function that returns none.
	Changes func() []Change
}

// noticeMark is the placeholder of the notice in the sources of pages.
const noticeMark = "<!-- notice -->"

// hasNotice reports whether there is a notice and a page shows it: /, /docs, its Reference's pages and its Guides.
func (b *builder) hasNotice(p page) bool {
	n := b.Config.Notice
	return n.Text != nil && (p.Path == "/" || p.Path == "/docs" || p.Section == n.Reference ||
		slices.ContainsFunc(n.Guides, func(name string) bool { return b.markdown.guides[name] == p.Path }))
}

// SampleBase is the service's address in the sources of pages. It is that of a demonstration, so that the commands of
// guides in the repository work too.
const SampleBase = "http://127.0.0.1:8080"

// sampleKeyPairs pairs the keys in the sources of pages with their replacements for services where they are not valid.
var sampleKeyPairs = []string{
	"pk_demo_all", "YOUR_API_KEY", "pk_demo_readonly", "YOUR_READ_ONLY_KEY", "pk_demo_subset", "YOUR_LIMITED_KEY",
	"pk_demo", "YOUR_KEY",
}

// SampleDay is the day on which the samples of guides were recorded. Their dates are shifted as if SampleDay were today, so
// that future dates stay in the future.
var SampleDay = time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC)

// dates matches the dates of samples.
var dates = regexp.MustCompile(`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}`)

// daysSinceSample returns the number of days from SampleDay to a time.
func daysSinceSample(now time.Time) int { return int(now.Sub(SampleDay).Hours() / 24) }

// sampleMarks matches the placeholders in sources, other than dates.
var sampleMarks = regexp.MustCompile("pk_demo|" + noticeMark + "|" + brandMarks + "|" + requestMarks.String())

// fill replaces the placeholders of a source: SampleBase by base, noticeMark by the notice and, outside a
// demonstration, the demonstration's keys by stand-ins. It also shifts the dates of samples.
func (s servedState) fill(source []byte, base string) []byte {
	notice := ""
	if s.notice != "" {
		notice = `<section class="notice" aria-label="Notice">` + string(s.notice) + "</section>"
	}
	pairs := append([]string{SampleBase, base, noticeMark, notice}, s.header.pairs()...)
	if !s.demo {
		pairs = append(pairs, sampleKeyPairs...)
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(s.shiftDates(source))))
}

// shiftDates returns the source with each of its dates s.days later. A month whose first and last day the source has, such
// as that of a bill, stays a whole month.
func (s servedState) shiftDates(source []byte) []byte {
	if s.days == 0 {
		return source
	}
	now := SampleDay.AddDate(0, 0, s.days)
	months := 12*(now.Year()-SampleDay.Year()) + int(now.Month()-SampleDay.Month())
	return dates.ReplaceAllFunc(source, func(date []byte) []byte {
		day, err := time.Parse(time.DateOnly, string(date))
		if err != nil {
			return date
		}
		first := day.AddDate(0, 0, 1-day.Day())
		last := first.AddDate(0, 1, -1)
		if (day.Equal(first) || day.Equal(last)) && bytes.Contains(source, []byte(first.Format(time.DateOnly))) &&
			bytes.Contains(source, []byte(last.Format(time.DateOnly))) {
			moved := first.AddDate(0, months, 0)
			if day.Equal(last) {
				moved = moved.AddDate(0, 1, -1)
			}
			return []byte(moved.Format(time.DateOnly))
		}
		return []byte(day.AddDate(0, 0, s.days).Format(time.DateOnly))
	})
}

// Text returns the source of a guide for a service at an address (without a trailing slash), with dates of samples
// shifted to now. demo is whether the service accepts the demonstration's keys.
func Text(source []byte, address string, demo bool, now time.Time) []byte {
	return servedState{demo: demo, days: daysSinceSample(now)}.fill(source, address)
}
