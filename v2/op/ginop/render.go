package ginop

import (
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/gzhttp"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// renderEnvelope writes an error in v2's format, the envelope.
func (e *Edge) renderEnvelope(c *gin.Context, err *domain.Error) error {
	return WriteJSON(c, op.StatusOf(err.Code), op.EnvelopeOf(err, RequestID(c), e.Address(c.Request)))
}

// jsonType is a header value that all responses share; nothing appends to it in place.
var jsonType = []string{"application/json; charset=utf-8"}

// Encode marshals a value as the interface's JSON. Invalid UTF-8, which a message may repeat from a caller's
// header, becomes U+FFFD rather than a 500.
func Encode(v any, options ...json.Options) ([]byte, error) {
	return json.Marshal(v, append(slices.Clip(options), jsontext.AllowInvalidUTF8(true))...)
}

// WriteJSON writes a response of one JSON value. If it returns an error, it has written nothing.
func WriteJSON(c *gin.Context, status int, v any, options ...json.Options) error {
	body, err := Encode(v, options...)
	if err != nil {
		return fmt.Errorf("encode the response: %w", err)
	}
	writeBody(c, status, body)
	return nil
}

// writeBody writes a JSON response with its Content-Length, so that a large one is not chunked.
func writeBody(c *gin.Context, status int, body []byte) {
	h := c.Writer.Header()
	h["Content-Type"], h["Content-Length"] = jsonType, []string{strconv.Itoa(len(body))}
	c.Writer.WriteHeader(status)
	_, _ = c.Writer.Write(body) // an error means that the client hung up
}

// compressedFrom is the length in bytes from which a response is compressed.
const compressedFrom = 1<<10 + 1

// Compress compresses responses above 1 KiB with gzip, for callers who accept it.
func Compress(h http.Handler) http.Handler {
	// The best speed, as the same processors answer the requests.
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(compressedFrom), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false),
	)
	if err != nil {
		panic(err) // the options are constants
	}
	return wrap(h)
}
