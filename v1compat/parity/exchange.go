package parity

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/idmap"
	"partnerapi/v1compat"
)

const (
	// exchangeAt is how many ids are exchanged at a time.
	exchangeAt = 1000
	// exchangeAs is the exchange in reports.
	exchangeAs = "POST /v1/ids/exchange"
)

// numbers finds numbers by the exchange of ids.
func (r *run) numbers(ctx context.Context) v1compat.Numbers {
	return func(keys []idmap.IDKey) (map[idmap.IDKey]int64, error) {
		found := map[idmap.IDKey]int64{}
		wanted := map[idmap.Kind][]jsontext.Value{}
		byID := map[string]idmap.IDKey{}
		for _, key := range keys {
			id := key.String()
			if n, ok := r.known.Load(key); ok {
				found[key] = n.(int64)
			} else if _, twice := byID[id]; !twice {
				byID[id], wanted[key.Kind] = key, append(wanted[key.Kind], text(id))
			}
		}
		for kind, ids := range wanted {
			pairs, err := r.exchange(ctx, kind.String(), ids)
			if err != nil {
				return nil, err
			}
			for _, pair := range pairs {
				key, ok := byID[pair.V2]
				if number, err := strconv.ParseInt(pair.one(), 10, 64); ok && err == nil {
					found[key] = number
					r.known.Store(key, number)
				}
			}
		}
		return found, nil
	}
}

// exchanged is an object in both versions.
type exchanged struct {
	V1 jsontext.Value `json:"v1"`
	V2 string         `json:"v2"`
}

// one is the id of v1 as it stands in paths.
func (e exchanged) one() string {
	var s string
	if json.Unmarshal(e.V1, &s) == nil {
		return s
	}
	return string(e.V1)
}

// exchange asks for ids in both versions.
func (r *run) exchange(ctx context.Context, kind string, ids []jsontext.Value) ([]exchanged, error) {
	var all []exchanged
	for len(ids) > 0 {
		some := ids[:min(len(ids), exchangeAt)]
		ids = ids[len(some):]
		body, err := json.Marshal(map[string]any{"kind": kind, "ids": some}, json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		a, err := r.service.do(ctx, request{method: http.MethodPost, path: "/v1/ids/exchange", body: string(body)})
		if err != nil {
			return nil, err
		}
		var out struct {
			Items []exchanged `json:"items"`
		}
		if a.status != http.StatusOK || json.Unmarshal(a.body, &out) != nil {
			r.report.count(exchangeAs, verdict{faults: []fault{{"status", number(a.status), number(http.StatusOK)}}}, a)
			continue
		}
		r.checkHeaders(exchangeAs, a)
		all = append(all, out.Items...)
	}
	return all, nil
}
