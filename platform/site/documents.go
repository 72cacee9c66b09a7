package site

import (
	"bytes"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"partnerapi/domain"
)

const (
	// keptAddresses is the number of addresses of the service for which a document's compressed body is cached.
	keptAddresses = 8
	// compressedAMinute limits the compressions in a minute, for addresses that are not in the cache. Callers who
	// invent more addresses get documents uncompressed.
	compressedAMinute = 20
)

// Documents serves texts that contain the service's address. A document is compressed once per address. The number of
// cached addresses, and of compressions per minute, is limited, because callers may invent addresses.
type Documents struct {
	// PublicURL is the public address of the service, without a trailing slash. If it is empty, documents contain the
	// address of the request's Host, or Address if the Host is invalid.
	PublicURL, Address string
	// SupportURL is the web or mail address where partners get help; empty for none.
	SupportURL string
	// Clock is the clock; nil is the machine's.
	Clock domain.Clock

	mu         sync.Mutex
	minute     time.Duration // the end of the current minute, by Elapsed
	compressed int           // the number of compressions in this minute
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
		made().serve(d, servedState{demo: true, days: days()}, w, r, http.StatusOK)
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

// mayCompress reports whether this minute's limit allows another compression, and counts it.
func (d *Documents) mayCompress() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if elapsed := d.clock().Elapsed(); elapsed >= d.minute {
		d.minute, d.compressed = elapsed+time.Minute, 0
	}
	if d.compressed == compressedAMinute {
		return false
	}
	d.compressed++
	return true
}

// hosts matches a valid Host: a name or an IP address, with an optional port.
var hosts = regexp.MustCompile(`^([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)

// BaseOf returns the service's address for a request: PublicURL, or else that of the request's Host, or Address if the
// Host is invalid. It ignores X-Forwarded-Host and similar headers.
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

// edition is a content for one servedState.
type edition struct {
	served servedState
	parts  [][]byte // the uncompressed body without the service's address, which stands between each two
	hash   string
	// compressed holds the gzipped bodies by address.
	compressed *lru.Cache[string, []byte]
}

// editionOf returns the edition for a state. It keeps only the edition for the last state.
func (c *content) editionOf(s servedState) *edition {
	if last := c.last.Load(); last != nil && last.served == s {
		return last
	}
	text := s.fill(c.source, SampleBase) // the address stays SampleBase, at which it is split
	cache, err := lru.New[string, []byte](keptAddresses)
	if err != nil {
		panic(err) // the size is a constant
	}
	made := &edition{served: s, parts: bytes.Split(text, []byte(SampleBase)), hash: hashOf(text), compressed: cache}
	c.last.Store(made)
	return made
}

// etag returns the ETag of the body for an address.
func (e *edition) etag(base string) string { return etagOf(hashOf([]byte(e.hash + base))) }

// body returns the body for an address. It is compressed if accepted is true and the limit of compressions allows it.
// Otherwise it is made of the edition's own parts, so that invented addresses cost no copies.
func (e *edition) body(d *Documents, base string, accepted bool) (body [][]byte, gzipped bool) {
	if accepted {
		if packed := e.compressedFor(d, base); packed != nil {
			return [][]byte{packed}, true
		}
	}
	address, body := []byte(base), make([][]byte, 0, 2*len(e.parts)-1)
	for i, part := range e.parts {
		if i > 0 {
			body = append(body, address)
		}
		body = append(body, part)
	}
	return body, false
}

// compressedFor returns the compressed body for an address; nil if it is not cached and this minute's limit is reached.
func (e *edition) compressedFor(d *Documents, base string) []byte {
	if packed, ok := e.compressed.Get(base); ok {
		return packed
	}
	if !d.mayCompress() {
		return nil
	}
	packed := compress(bytes.Join(e.parts, []byte(base)))
	e.compressed.Add(base, packed)
	return packed
}

// servedState holds the values in pages that depend on the service, other than its address. It does not depend on the
// caller.
type servedState struct {
	demo   bool          // the keys of the demonstration are valid
	notice template.HTML // the text of the Notice; empty for none
	days   int           // the number of days since SampleDay
}

// Notice is shown at the top of the start page, of /docs, of a reference and of some guides.
type Notice struct {
	// Reference and Guides are the names of the pages that show it.
	Reference string
	Guides    []string
	// Text returns the notice for a request; empty for none.
	Text func() template.HTML
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

// SampleDay is the day on which the samples of guides were made. Their dates are shifted as if SampleDay were today, so
// that future dates stay in the future.
var SampleDay = time.Date(2026, 6, 15, 0, 0, 0, 0, time.UTC)

// dates matches the dates of samples.
var dates = regexp.MustCompile(`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}`)

// daysSinceSample returns the number of days from SampleDay to a time.
func daysSinceSample(now time.Time) int { return int(now.Sub(SampleDay).Hours() / 24) }

// sampleMarks matches the placeholders in sources, other than dates.
var sampleMarks = regexp.MustCompile("pk_demo|" + noticeMark + "|" + regexp.QuoteMeta(SampleBase))

// fill replaces the placeholders of a source: SampleBase by base, noticeMark by the notice and, outside a
// demonstration, the demonstration's keys by stand-ins. It also shifts the dates of samples.
func (s servedState) fill(source []byte, base string) []byte {
	notice := ""
	if s.notice != "" {
		notice = `<div class="notice" role="note" aria-label="Notice">` + string(s.notice) + "</div>"
	}
	pairs := []string{SampleBase, base, noticeMark, notice}
	if !s.demo {
		pairs = append(pairs, sampleKeyPairs...)
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(s.shiftDates(source))))
}

// shiftDates returns the source with each of its dates s.days later.
func (s servedState) shiftDates(source []byte) []byte {
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

// Text returns the source of a guide for a service at an address (without a trailing slash), with dates of samples
// shifted to now. demo is whether the service accepts the demonstration's keys.
func Text(source []byte, address string, demo bool, now time.Time) []byte {
	return servedState{demo: demo, days: daysSinceSample(now)}.fill(source, address)
}
