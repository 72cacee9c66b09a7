package site

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzhttp"
)

// content is a page or a file.
type content struct {
	contentType  string
	cacheControl string
	// policy is the page's Content-Security-Policy; empty for the constant policy.
	policy string
	// shiftsDates is true if dates in the content are shifted at each request (see SampleDay).
	shiftsDates bool
	etag        string
	// compressed is the body in gzip; plain returns the uncompressed body for the rare callers without gzip.
	compressed []byte
	plain      func() []byte
	// source is the text from which editions are rendered, for content with the service's address or another of
	// sampleMarks. Such content has no etag, compressed and plain. It is nil for other content.
	source []byte
	last   atomic.Pointer[edition] // the edition of the last request
}

const (
	// revalidated is for pages, which may change with the program.
	revalidated = "no-cache"
	// privateCache is for pages that depend on the Host of the request.
	privateCache = "private, no-cache"
	// immutable is for files whose name contains the hash of their content.
	immutable = "public, max-age=31536000, immutable"
)

// newContent returns the content of a body. A revalidated body with placeholders (sampleMarks) is kept as a source, to
// be filled in for each request, with privateCache if that depends on the request (requestMarks). Any other body is
// compressed at once.
func newContent(contentType, cacheControl string, body []byte) *content {
	if cacheControl == revalidated && sampleMarks.Match(body) {
		if requestMarks.Match(body) {
			cacheControl = privateCache
		}
		return &content{contentType: contentType, cacheControl: cacheControl, source: body}
	}
	return compressedContent(contentType, cacheControl, compress(body))
}

// compressedContent returns content from a compressed body. The uncompressed body for callers without gzip is
// cached after its first use.
func compressedContent(contentType, cacheControl string, compressed []byte) *content {
	return &content{
		contentType: contentType, cacheControl: cacheControl,
		etag: etagOf(hashOf(compressed)), compressed: compressed,
		plain: sync.OnceValue(func() []byte { return uncompressed(compressed) }),
	}
}

// compress compresses a body that is sent often, with the best compression.
func compress(body []byte) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(body)
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		panic(err) // a buffer takes everything
	}
	return out.Bytes()
}

// uncompressed undoes compress.
func uncompressed(compressed []byte) (body []byte) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err == nil {
		body, err = io.ReadAll(r)
	}
	if err != nil {
		panic(err) // it is part of the program
	}
	return body
}

// etagOf returns the ETag of a content. It is weak, because both encodings have the same.
func etagOf(hash string) string { return `W/"` + hash + `"` }

// hashOf returns the hash that identifies a content.
func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}

// body returns the ETag of the body for a request, and a function that returns the parts of the body, in gzip if the
// caller accepts it.
func (c *content) body(
	r *http.Request, state servedState, v values,
) (etag string, encode func() (body [][]byte, gzipped bool)) {
	accepted := acceptsGzip(r.Header.Get("Accept-Encoding"))
	if c.source != nil {
		if strings.HasPrefix(c.contentType, "text/html") {
			v.base = template.HTMLEscapeString(v.base)
		}
		e := c.editionOf(state)
		return e.etag(v), func() ([][]byte, bool) {
			if accepted {
				return e.gzipped(v), true
			}
			return e.plain(v), false
		}
	}
	return c.etag, func() ([][]byte, bool) {
		if accepted {
			return [][]byte{c.compressed}, true
		}
		return [][]byte{c.plain()}, false
	}
}

// serve writes the content with a status. If the status is 200, it sets the ETag, and returns 304 if the caller has it.
func (c *content) serve(w http.ResponseWriter, r *http.Request, status int, state servedState, v values) {
	etag, encode := c.body(r, state, v)
	headers := w.Header()
	if c.policy != "" {
		headers.Set("Content-Security-Policy", c.policy)
	}
	headers.Set("Cache-Control", c.cacheControl)
	headers.Set("Vary", "Accept-Encoding")
	if status == http.StatusOK {
		headers.Set("ETag", etag)
		if matchesETag(r.Header.Get("If-None-Match"), etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}

	body, gzipped := encode()
	headers.Set("Content-Type", c.contentType)
	if gzipped {
		headers.Set("Content-Encoding", "gzip")
	} else {
		headers.Set(gzhttp.HeaderNoCompression, "1") // the middleware must not compress it each time
	}
	length := 0
	for _, part := range body {
		length += len(part)
	}
	headers.Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	for _, part := range body {
		if _, err := w.Write(part); err != nil {
			return // the connection is closed
		}
	}
}

// matchesETag reports whether an If-None-Match contains "*", or the tag, compared weakly.
func matchesETag(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

// acceptsGzip reports whether an Accept-Encoding allows gzip: its first "gzip" or "*" has no weight, or one above 0.
func acceptsGzip(header string) bool {
	for offer := range strings.SplitSeq(header, ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if name := strings.TrimSpace(coding); !strings.EqualFold(name, "gzip") && name != "*" {
			continue
		}
		q, weighted := strings.CutPrefix(strings.TrimSpace(weight), "q=")
		value, err := strconv.ParseFloat(q, 64)
		return !weighted || err == nil && value > 0
	}
	return false
}

//go:embed assets/*.css assets/*.js assets/*.svg assets/vendor/*.gz
var assetFiles embed.FS

// assets are the paths of the files that pages load.
type assets struct {
	Frame, Style, Icon string
	// Site is the script of samples on all pages.
	Site string
	// Search is the script that searches Index with Library.
	Search, Library, Index string
	// Reference is the script that shows a document with Scalar.
	Reference, Scalar string
}

// addAssets adds the styles, the scripts and the icon, under names with their hashes, and returns their paths.
func (b *builder) addAssets() (a assets, err error) {
	for _, file := range []struct {
		name, contentType string
		path              *string
	}{
		{"frame.css", "text/css; charset=utf-8", &a.Frame},
		{"site.css", "text/css; charset=utf-8", &a.Style},
		{"icon.svg", "image/svg+xml", &a.Icon},
		{"site.js", script, &a.Site},
		{"search.js", script, &a.Search},
		{"reference.js", script, &a.Reference},
		{"vendor/minisearch.js.gz", script, &a.Library},
		{"vendor/scalar.js.gz", script, &a.Scalar},
	} {
		body, err := assetFiles.ReadFile("assets/" + file.name)
		if err != nil {
			return a, err
		}
		name, packed := strings.CutSuffix(path.Base(file.name), ".gz")
		extension := path.Ext(name)
		*file.path = "/docs/assets/" + strings.TrimSuffix(name, extension) + "." + hashOf(body) + extension
		if !packed {
			body = compress(comments.ReplaceAll(body, nil))
		}
		b.pages[*file.path] = compressedContent(file.contentType, immutable, body)
	}
	return a, nil
}

// comments matches those of styles, and those of scripts on their own lines, which readers are not sent.
var comments = regexp.MustCompile(`(?m)^\s*//.*\n|(?s)/\*.*?\*/\s*`)

// script is the content type of scripts.
const script = "text/javascript; charset=utf-8"
