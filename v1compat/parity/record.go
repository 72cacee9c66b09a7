package parity

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/v1compat"
)

const (
	// maxLogged bounds a line of a log, and maxEntry an entry of a HAR file, in bytes.
	maxLogged = 1 << 20
	maxEntry  = 32 << 20
	// maxDistinct bounds how many different requests are recorded.
	maxDistinct = 200_000
)

// Recording says what was recorded.
type Recording struct {
	// Seen are all requests, Kept those of v1 that only read, and Distinct how many of
	// these differ.
	Seen, Kept, Distinct int
	// Full says that more requests differed than are recorded: 200,000.
	Full bool
}

// recorder folds equal requests.
type recorder struct {
	Recording
	run   *run
	order []*Recorded
	by    map[string]*Recorded
}

// NewRecorder records requests of v1 that only read, of logs and HAR files that are read
// one after the other: lines in the common or combined format of Apache and nginx,
// Caddy's and the service's own lines of JSON, and HAR 1.2. A log has no bodies, so the
// requests of POST /v1/sentemails are taken from HAR files alone; the service's own log
// has no queries. Keys and unknown parameters are left out.
func NewRecorder(facade *v1compat.Facade) (*Recorder, error) {
	all, err := facade.Readings()
	if err != nil {
		return nil, err
	}
	readings := map[string]*v1compat.Reading{}
	for _, reading := range all {
		readings[reading.ID] = reading
	}
	return &Recorder{recorder{run: &run{readings: readings}, by: map[string]*Recorded{}}}, nil
}

// Recorder records requests.
type Recorder struct{ r recorder }

// Read reads a log or a HAR file. unreadable is told of each line, or entry, that
// cannot be read, by its number.
func (r *Recorder) Read(from io.Reader, unreadable func(n int, reason string)) error {
	in := bufio.NewReaderSize(from, 64<<10)
	start, err := in.Peek(64 << 10)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return err
	}
	if isHAR(start) {
		return r.r.readHAR(in, unreadable)
	}
	return eachLine(in, maxLogged, func(n int, line []byte, long bool) error {
		if long {
			unreadable(n, "the line is over 1 MiB")
			return nil
		}
		recorded, err := readLine(string(line))
		if err != nil {
			unreadable(n, err.Error())
			return nil
		}
		r.r.add(recorded)
		return nil
	})
}

// Write writes what was recorded, a line of JSON for each request, in the order in which
// each was first made.
func (r *Recorder) Write(to io.Writer) (Recording, error) {
	out := bufio.NewWriter(to)
	for _, recorded := range r.r.order {
		line, err := json.Marshal(recorded)
		if err != nil {
			return r.r.Recording, err
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return r.r.Recording, err
		}
	}
	return r.r.Recording, out.Flush()
}

// parametersKept are the parameters of v1's queries.
var parametersKept = []string{"end", "ids", "limit", "offset", "start", "status"}

// add records a request, if it is one of v1 that only reads.
func (r *recorder) add(recorded Recorded) {
	r.Seen++
	at, err := url.Parse(recorded.Path)
	if err != nil {
		return
	}
	query := at.Query()
	for name := range query {
		if !slices.Contains(parametersKept, name) {
			query.Del(name)
		}
	}
	// A proxy may serve the interface below a path of its own.
	recorded.Path = at.EscapedPath()
	if i := strings.Index(recorded.Path, "/v1/"); i > 0 {
		recorded.Path = recorded.Path[i:]
	}
	if len(query) > 0 {
		recorded.Path += "?" + query.Encode()
	}
	if recorded.Method == http.MethodHead {
		recorded.Method = http.MethodGet
	}
	m, err := r.run.match(recorded)
	if err != nil {
		return
	}
	recorded.Body = nil
	if m.reading.ID == "sentemails" {
		recorded.Body, _ = json.Marshal(m.body)
	}

	r.Kept++
	key := recorded.Method + " " + recorded.Path + " " + string(recorded.Body)
	if known, ok := r.by[key]; ok {
		known.Count++
		return
	}
	if len(r.order) == maxDistinct {
		r.Full = true
		return
	}
	recorded.Count = 1
	r.by[key], r.order = &recorded, append(r.order, &recorded)
	r.Distinct++
}

// common is a line of the common or combined format, as far as the status.
var common = regexp.MustCompile(`^\S+ \S+ .*?\[[^\]]*\] "([A-Z]+) (\S+)(?: HTTP/[0-9.]+)?" \d{3} `)

// readLine reads a line of a log.
func readLine(line string) (Recorded, error) {
	if strings.HasPrefix(line, "{") {
		return readJSONLine(line)
	}
	found := common.FindStringSubmatch(line + " ")
	if found == nil {
		return Recorded{}, errors.New("neither JSON nor a line of the common or combined format")
	}
	return Recorded{Method: found[1], Path: found[2]}, nil
}

// readJSONLine reads a line of Caddy's or of the service's own log. A line that is
// about something else than a request is one without a method.
func readJSONLine(line string) (Recorded, error) {
	var entry struct {
		Method  string `json:"method"`
		Path    string `json:"path"`
		Request struct {
			Method string `json:"method"`
			URI    string `json:"uri"`
		} `json:"request"`
	}
	if err := json.Unmarshal([]byte(line), &entry, jsontext.AllowDuplicateNames(true)); err != nil {
		return Recorded{}, errors.New("no JSON of a log that is known")
	}
	if entry.Request.Method != "" {
		return Recorded{Method: entry.Request.Method, Path: entry.Request.URI}, nil
	}
	return Recorded{Method: entry.Method, Path: entry.Path}, nil
}

// isHAR reports whether a file begins as HAR does: an object whose first member is log.
func isHAR(start []byte) bool {
	start = bytes.TrimPrefix(start, []byte("\xef\xbb\xbf"))
	dec := jsontext.NewDecoder(bytes.NewReader(start))
	if dec.PeekKind() != '{' {
		return false
	}
	if _, err := dec.ReadToken(); err != nil {
		return false
	}
	name, err := dec.ReadToken()
	return err == nil && name.Kind() == '"' && name.String() == "log" && dec.PeekKind() == '{'
}

// readHAR reads the entries of a HAR file, one after the other.
func (r *recorder) readHAR(in *bufio.Reader, unreadable func(n int, reason string)) error {
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(len(mark))
	}
	limited := &bounded{from: in, left: maxEntry}
	dec := jsontext.NewDecoder(limited, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for n := 0; ; {
		limited.left = maxEntry
		if dec.StackPointer() == "/log/entries" && dec.PeekKind() == '[' {
			if _, err := dec.ReadToken(); err != nil {
				return err
			}
			for dec.PeekKind() != ']' {
				limited.left = maxEntry
				value, err := dec.ReadValue()
				if err != nil {
					return fmt.Errorf("entry %d: %w", n+1, err)
				}
				n++
				if recorded, err := readEntry(value); err != nil {
					unreadable(n, err.Error())
				} else {
					r.add(recorded)
				}
			}
			return nil
		}
		if depth := dec.StackDepth(); depth == 2 && dec.StackPointer() != "/log/entries" && isValue(dec) {
			if err := dec.SkipValue(); err != nil {
				return err
			}
			continue
		}
		if _, err := dec.ReadToken(); err != nil {
			if errors.Is(err, io.EOF) {
				return errors.New("the HAR file has no entries")
			}
			return err
		}
	}
}

// isValue reports whether the decoder is before a member's value rather than its name.
func isValue(dec *jsontext.Decoder) bool {
	_, length := dec.StackIndex(dec.StackDepth())
	return length%2 == 1
}

// bounded is a reader of so many bytes.
type bounded struct {
	from io.Reader
	left int
}

// Read reads, within the bound.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("it is over 32 MiB")
	}
	n, err := b.from.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// readEntry reads an entry of a HAR file.
func readEntry(value jsontext.Value) (Recorded, error) {
	var entry struct {
		Request struct {
			Method   string `json:"method"`
			URL      string `json:"url"`
			PostData struct {
				Text string `json:"text"`
			} `json:"postData"`
		} `json:"request"`
	}
	opts := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := json.Unmarshal(value, &entry, opts); err != nil || entry.Request.Method == "" {
		return Recorded{}, errors.New("it has no request")
	}
	at, err := url.Parse(entry.Request.URL)
	if err != nil {
		return Recorded{}, errors.New("its address cannot be read")
	}
	return Recorded{
		Method: entry.Request.Method, Path: at.RequestURI(), Body: jsontext.Value(entry.Request.PostData.Text),
	}, nil
}
