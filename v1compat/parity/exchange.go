package parity

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat"
)

const (
	// exchangeAt is how many ids are exchanged at a time.
	exchangeAt = 1000
	// maxKnown bounds the numbers that are remembered.
	maxKnown = 100_000
)

// numbersCache remembers numbers. They never change while a service runs, but for an
// import.
type numbersCache struct {
	mu    sync.Mutex
	found map[idmap.IDKey]int64
}

// idOf is an id as v2 shows it.
func idOf(key idmap.IDKey) string {
	switch key.Kind {
	case idmap.Client:
		return domain.ClientID(key.ID).String()
	case idmap.Collection:
		return domain.CollectionID(key.ID).String()
	case idmap.Policy:
		return domain.PolicyID(key.ID).String()
	case idmap.Template:
		return domain.TemplateID(key.ID).String()
	case idmap.Group:
		return domain.GroupID(key.ID).String()
	}
	return domain.ReportID(key.ID).String()
}

// numbers finds numbers by the exchange of ids.
func (r *run) numbers(ctx context.Context) v1compat.Numbers {
	return func(keys []idmap.IDKey) (map[idmap.IDKey]int64, error) {
		found := map[idmap.IDKey]int64{}
		unknown := map[idmap.Kind]map[string]idmap.IDKey{}
		r.known.mu.Lock()
		for _, key := range keys {
			if n := r.known.found[key]; n != 0 {
				found[key] = n
				continue
			}
			if unknown[key.Kind] == nil {
				unknown[key.Kind] = map[string]idmap.IDKey{}
			}
			unknown[key.Kind][idOf(key)] = key
		}
		r.known.mu.Unlock()

		for kind, ids := range unknown {
			if err := r.askNumbers(ctx, kind, ids, found); err != nil {
				return nil, err
			}
		}
		return found, nil
	}
}

// askNumbers adds the numbers of objects of a kind.
func (r *run) askNumbers(
	ctx context.Context, kind idmap.Kind, ids map[string]idmap.IDKey, found map[idmap.IDKey]int64,
) error {
	asked := make([]jsontext.Value, 0, len(ids))
	for id := range ids {
		asked = append(asked, text(id))
	}
	pairs, err := r.exchange(ctx, kind.String(), asked)
	if err != nil {
		return err
	}

	r.known.mu.Lock()
	defer r.known.mu.Unlock()
	if r.known.found == nil || len(r.known.found) > maxKnown {
		r.known.found = map[idmap.IDKey]int64{}
	}
	for _, pair := range pairs {
		key, ok := ids[pair.V2]
		number, err := strconv.ParseInt(pair.one(), 10, 64)
		if ok && err == nil {
			found[key], r.known.found[key] = number, number
		}
	}
	return nil
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
			return nil, Unable{fmt.Errorf("POST %s/v1/ids/exchange was answered %d: %s", r.service.base, a.status, message(a.body))}
		}
		r.checkHeaders("POST /v1/ids/exchange", a)
		all = append(all, out.Items...)
	}
	return all, nil
}
