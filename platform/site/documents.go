package site

import (
	"bytes"
	"net/http"
	"regexp"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// keptAddresses is for how many addresses of the service a document is kept compressed.
	keptAddresses = 8
	// compressedAMinute is how many documents are compressed in a minute, for addresses that
	// they are not kept for. Whoever asks by ever new ones is sent the others as they are.
	compressedAMinute = 20
)

// Documents are texts that name the service as their callers know it. A document is compressed
// once for an address; how many addresses and how often is bounded, as a caller may invent them.
type Documents struct {
	// PublicURL is the address that callers know the service by, without a slash at its
	// end. Where it is empty, documents name the one that a request was made to, or
	// Address where that is none.
	PublicURL, Address string
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	mu         sync.Mutex
	minute     time.Time // when the minute began
	compressed int       // in it
}

// Handler answers with a document, whose source names the service by SampleBase.
func (d *Documents) Handler(contentType string, source []byte) http.Handler {
	made := newContent(contentType, revalidated, source)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made.serve(d, served{demo: true}, w, r, http.StatusOK)
	})
}

// now is the time of the clock.
func (d *Documents) now() time.Time {
	if d.Now == nil {
		return time.Now()
	}
	return d.Now()
}

// mayCompress takes one of the compressions of this minute.
func (d *Documents) mayCompress() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := d.now(); now.Sub(d.minute) >= time.Minute || now.Before(d.minute) {
		d.minute, d.compressed = now, 0
	}
	if d.compressed == compressedAMinute {
		return false
	}
	d.compressed++
	return true
}

// hosts is what a Host may be: a name or an address, and a port.
var hosts = regexp.MustCompile(`^([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)

// baseOf is the address that a caller knows the service by: the public one, else the
// one that was called. X-Forwarded-Host and the like are not believed.
func (d *Documents) baseOf(r *http.Request) string {
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

// edition is a content that names the service as it is served for some time, cut where the
// address stands.
type edition struct {
	served served
	parts  [][]byte
	hash   string
	// compressed are the bodies by gzip, by the address.
	compressed *lru.Cache[string, []byte]
}

// as is the content for what is served.
func (c *content) as(s served) *edition {
	if last := c.last.Load(); last != nil && last.served == s {
		return last
	}
	whole := s.fill(c.source, SampleBase)
	kept, err := lru.New[string, []byte](keptAddresses)
	if err != nil {
		panic(err) // the size is a constant
	}
	made := &edition{served: s, parts: bytes.Split(whole, []byte(SampleBase)), hash: hashOf(whole), compressed: kept}
	c.last.Store(made)
	return made
}

// body is the edition's for an address: its tag, and what writes it in pieces, compressed
// or not.
func (e *edition) body(d *Documents, base string) (etag string, pieces func(gzipped bool) ([][]byte, bool)) {
	return etagOf(hashOf([]byte(e.hash + base))), func(gzipped bool) ([][]byte, bool) {
		if gzipped {
			if packed := e.packed(d, base); packed != nil {
				return [][]byte{packed}, true
			}
		}
		return e.with(base), false
	}
}

// packed is the compressed body for an address; nil where it is not to be compressed now.
func (e *edition) packed(d *Documents, base string) []byte {
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

// with are the pieces of the body for an address.
func (e *edition) with(base string) [][]byte {
	pieces := make([][]byte, 0, 2*len(e.parts))
	for i, part := range e.parts {
		if i > 0 {
			pieces = append(pieces, []byte(base))
		}
		pieces = append(pieces, part)
	}
	return pieces
}
