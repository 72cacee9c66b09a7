package site

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync/atomic"
)

// content is a page or a file, ready to be sent.
type content struct {
	contentType  string
	cacheControl string
	etag         string
	// policy is that of its page; empty is the usual one.
	policy string
	// compressed is the body, by gzip.
	compressed []byte
	// source is what is filled in for each caller; nil for most, which have no other
	// body. last is the content that was made of it last: the only one that is kept.
	source []byte
	last   atomic.Pointer[filled]
}

const (
	// revalidated is for pages: a new program may have others.
	revalidated = "no-cache"
	// unshared is for pages that name the service as one caller does.
	unshared = "private, no-cache"
	// lasting is for files whose name has the hash of what is in them.
	lasting = "public, max-age=31536000, immutable"
)

func newContent(contentType, cacheControl string, body []byte) (*content, error) {
	if cacheControl == revalidated && samples.Match(body) {
		return &content{contentType: contentType, source: body}, nil
	}
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return compressedContent(contentType, cacheControl, hashOf(body), out.Bytes()), nil
}

func compressedContent(contentType, cacheControl, hash string, compressed []byte) *content {
	// The two encodings share the tag, so it is a weak one.
	return &content{contentType: contentType, cacheControl: cacheControl, etag: `W/"` + hash + `"`, compressed: compressed}
}

// hashOf names a content.
func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:8])
}

// serve writes the content, or 304 where the caller has it.
func (c *content) serve(w http.ResponseWriter, r *http.Request, status int) {
	h := w.Header()
	if c.policy != "" {
		h.Set("Content-Security-Policy", c.policy)
	}
	h.Set("Cache-Control", c.cacheControl)
	h.Set("Vary", "Accept-Encoding")
	if status == http.StatusOK {
		h.Set("ETag", c.etag)
		if matches(r.Header.Get("If-None-Match"), c.etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	h.Set("Content-Type", c.contentType)
	body := c.compressed
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")
	} else if plain, err := c.uncompressed(); err == nil {
		body = plain
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the caller may have hung up
	}
}

// uncompressed is for the rare callers who take no gzip.
func (c *content) uncompressed() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(c.compressed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// matches reports whether an If-None-Match holds a tag, compared weakly.
func matches(header, etag string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || tag != "" && strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

// acceptsGzip reads an Accept-Encoding.
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
	// Search searches Index with Library.
	Search, Library, Index string
	// Reference shows a document with Scalar.
	Reference, Scalar string
}

// addAssets adds the files under names that change with them.
func (b *builder) addAssets() (a assets, err error) {
	for _, file := range []struct {
		name, contentType string
		path              *string
	}{
		{"frame.css", "text/css; charset=utf-8", &a.Frame},
		{"site.css", "text/css; charset=utf-8", &a.Style},
		{"icon.svg", "image/svg+xml", &a.Icon},
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
		made := compressedContent(file.contentType, lasting, hashOf(body), body)
		if !packed {
			if made, err = newContent(file.contentType, lasting, body); err != nil {
				return a, fmt.Errorf("file %s: %w", file.name, err)
			}
		}
		extension := path.Ext(name)
		*file.path = "/docs/assets/" + strings.TrimSuffix(name, extension) + "." + hashOf(body) + extension
		b.pages[*file.path] = made
	}
	return a, nil
}

const script = "text/javascript; charset=utf-8"
