package ginop

import (
	"compress/gzip"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
)

// compressedFrom is the length in bytes from which an answer is compressed.
const compressedFrom = 1<<10 + 1

// Compress compresses answers above 1 KiB with gzip, for callers who accept it.
func Compress(h http.Handler) http.Handler {
	// Speed over size: the same processors answer the requests.
	wrap, err := gzhttp.NewWrapper(
		gzhttp.MinSize(compressedFrom), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.EnableZstd(false),
	)
	if err != nil {
		panic(err) // the options are constants
	}
	return wrap(h)
}
