package parity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"partnerapi/domain"
	"partnerapi/v1compat"
)

// Replay makes the requests of a file and those of v2 that follow them, and compares the
// answers. The file is HAR, or has lines of [GET] /v1/path?query; it is read to its end
// first. unreadable is called for each line, or entry of HAR, that is no request of v1 that
// only reads, by its number; in HAR these are passed over. That there was one is an error,
// as is that nothing was compared, or nothing but refusals.
func Replay(ctx context.Context, c Config, file io.Reader, unreadable func(n int, reason string)) (*Report, error) {
	r, err := newRun(c)
	if err != nil {
		return &Report{}, err
	}
	defer r.close()
	r.Sample = 0

	// Two walks over one list at a time would disturb each other (decisions 5.7).
	lists, bad := map[string][]matched{}, 0
	err = readTraffic(file, func(asked request) error {
		m, err := r.match(asked)
		if err == nil {
			of := m.reading.ID + " " + strings.Join(m.parents, "/")
			lists[of] = append(lists[of], m)
		}
		return err
	}, func(n int, reason string) {
		bad++
		unreadable(n, reason)
	})
	if err != nil {
		return r.report, Unable{err}
	}
	if err := r.begin(ctx); err != nil {
		return r.report, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxInFlight)
	for _, of := range slices.Sorted(maps.Keys(lists)) {
		group.Go(func() error { return r.replayAll(ctx, lists[of]) })
	}
	switch err := group.Wait(); {
	case err != nil:
		return r.report, err
	case bad > 0:
		return r.report, fmt.Errorf("requests that could not be read: %d", bad)
	case r.report.Compared() == 0:
		return r.report, errors.New("nothing was compared: the file has no request of v1 that only reads")
	case !r.answered.Load():
		return r.report, errors.New("nothing but refusals was compared: v1 answers every request of the file with an error; " +
			"is the key that of the traffic?")
	}
	return r.report, nil
}

func (r *run) replayAll(ctx context.Context, requests []matched) error {
	for _, m := range requests {
		if err := r.replay(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// matched is a request of v1 with its route.
type matched struct {
	request
	reading *v1compat.Reading
	parents []string // in the path, as v1 has them
	query   url.Values
	mails   mailBody
}

// mailBody is what POST /v1/sentemails takes.
type mailBody struct {
	User  string   `json:"user_infima_id,omitzero"`
	Email string   `json:"email_address,omitzero"`
	Types []string `json:"message_types,omitzero"`
	Start string   `json:"start_time,omitzero"`
}

// match finds the route of a request.
func (r *run) match(asked request) (matched, error) {
	m := matched{request: asked}
	path, rawQuery, _ := strings.Cut(asked.path, "?")
	path, ok := strings.CutPrefix(path, "/v1/")
	if !ok {
		return m, errNoReading
	}
	for _, reading := range r.readings {
		if reading.Method != asked.method {
			continue
		}
		if m.parents, ok = parentsIn(reading.Path, "/"+path); ok {
			m.reading = reading
			break
		}
	}
	if m.reading == nil {
		return m, errNoReading
	}
	var err error
	if m.query, err = url.ParseQuery(rawQuery); err != nil {
		return m, errors.New("its query is malformed")
	}
	if asked.body != "" && json.Unmarshal([]byte(asked.body), &m.mails) != nil {
		return m, errors.New("its body cannot be read")
	}
	return m, nil
}

// parentsIn are the values of a route's parameters in a path.
func parentsIn(route, path string) ([]string, bool) {
	named, given := strings.Split(route, "/"), strings.Split(path, "/")
	if len(named) != len(given) {
		return nil, false
	}
	var parents []string
	for i, name := range named {
		if !strings.HasPrefix(name, ":") {
			if name != given[i] {
				return nil, false
			}
			continue
		}
		text, err := url.PathUnescape(given[i])
		if err != nil || text == "" {
			return nil, false
		}
		parents = append(parents, text)
	}
	return parents, true
}

// replay makes a request, and compares.
func (r *run) replay(ctx context.Context, m matched) error {
	if r.old != nil {
		l := &list{Reading: m.reading, spec: specs[m.reading.ID], body: m.body, exact: exactly(m)}
		_, err := r.compareList(ctx, l)
		return err
	}
	if m.reading.ID == "sentemails" && m.mails.User == "" && m.mails.Email != "" {
		a, err := r.service.do(ctx, m.request)
		if err == nil && a.status < 400 {
			r.answered.Store(true)
			r.report.count(operationOf(m.reading), verdict{explained: 1}) // v2 has the mails of a user, not of an address
			return nil
		}
		if err != nil {
			return err
		}
	}
	l, err := r.listOf(ctx, m)
	if err != nil {
		return err
	}
	l.exact = exactly(m)
	_, err = r.compareList(ctx, l)
	return err
}

// exactly is the page that a request asks for.
func exactly(m matched) *exactPage {
	return &exactPage{
		path: m.path, limit: numberIn(m.query, "limit", defaultLimit(m.reading.ID)), offset: numberIn(m.query, "offset", 0),
	}
}

// listOf is the list that a request is of, its ids exchanged for v2's. An id of nothing
// stays as it is.
func (r *run) listOf(ctx context.Context, m matched) (*list, error) {
	of := parents{}
	for i, kind := range kindsIn(m.reading.Path) {
		o, err := r.inBoth(ctx, kind, m.parents[i])
		if err != nil {
			return nil, err
		}
		of[kind] = o
	}
	filters, err := r.filters(ctx, m)
	if err != nil {
		return nil, err
	}
	switch m.reading.ID {
	case "phishing":
		of["client"], err = r.clientOf(ctx, of["user"])
	case "sentemails":
		of["user"], err = r.inBoth(ctx, "user", m.mails.User)
	}
	l := r.list(m.reading.ID, object{v2: filters}, of)
	if m.reading.ID == "sentemails" {
		start, err := domain.ParseTime(m.mails.Start)
		if err != nil {
			start = r.Now().UTC().AddDate(0, 0, -emailDays)
		}
		l.mails(start, m.mails.Types)
		l.body = m.body
	}
	return l, err
}

// defaultLimit is how many items v1 shows where no limit is given.
func defaultLimit(route string) int {
	switch {
	case route == "sentemails":
		return 100
	case specs[route].most == 50:
		return 20
	}
	return 200
}

func numberIn(query url.Values, name string, otherwise int) int {
	if n, err := strconv.Atoi(query.Get(name)); err == nil {
		return n
	}
	return otherwise
}

// inBoth is an object of v1 in both versions. The id of nothing is the same in both.
func (r *run) inBoth(ctx context.Context, kind, id string) (object, error) {
	if strings.ContainsFunc(id, unicode.IsControl) {
		return object{id, id}, nil
	}
	asked := text(id)
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && kind != "report" && strconv.FormatInt(n, 10) == id {
		asked = jsontext.Value(id)
	}
	pairs, err := r.exchange(ctx, kind, []jsontext.Value{asked})
	if err != nil || len(pairs) == 0 {
		return object{id, id}, err
	}
	return object{id, pairs[0].V2}, nil
}

// clientOf is the client of a user.
func (r *run) clientOf(ctx context.Context, u object) (object, error) {
	a, err := r.service.do(ctx, get("/v2/users/"+url.PathEscape(u.v2)))
	if err != nil || a.status != http.StatusOK {
		return object{v2: domain.ClientID(unusedID).String()}, err
	}
	return object{v2: memberOf(a.body, "client_id")}, nil
}

// filters are v2's in the place of v1's.
func (r *run) filters(ctx context.Context, m matched) (string, error) {
	out := url.Values{}
	switch m.reading.ID {
	case "clients":
		if !m.query.Has("ids") {
			break
		}
		var ids []string
		for number := range strings.SplitSeq(strings.Join(m.query["ids"], ","), ",") {
			if number == "" {
				continue
			}
			o, err := r.inBoth(ctx, "client", number)
			if err != nil {
				return "", err
			}
			ids = append(ids, o.v2)
		}
		out.Set("ids", strings.Join(ids, ","))
	case "users":
		out.Set("status", "active")
		fallthrough
	case "policy-users":
		if status := m.query.Get("status"); status != "" {
			out.Set("status", status)
		}
	case "exposures":
		setTime(out, "since", m.query.Get("start"), 0)
		setTime(out, "until", m.query.Get("end"), 1)
	}
	return out.Encode(), nil
}

// setTime sets a bound of a period: v1's end is the last moment, or the last day, of
// it, and v2's is the first after it.
func setTime(query url.Values, name, value string, after int) {
	if day, err := time.Parse(time.DateOnly, value); err == nil {
		query.Set(name, day.AddDate(0, 0, after).Format(time.RFC3339))
		return
	}
	if at, err := domain.ParseTime(value); err == nil {
		at = at.Add(time.Duration(after) * time.Microsecond)
		query.Set(name, at.Format(time.RFC3339Nano))
		return
	}
	if value != "" {
		query.Set(name, value)
	}
}
