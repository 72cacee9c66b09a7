package parity

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat"
)

const (
	// exchangeAt is how many ids are exchanged at a time.
	exchangeAt = 1000
	// exchangeAs is the exchange in reports.
	exchangeAs = "POST /v1/ids/exchange"
)

// unusedNumber and unusedID are no object's: the registry gives the number last of all.
const unusedNumber = "2147483647"

var unusedID = idmap.UUID{6: 0x70, 8: 0x80}

// numbers finds the numbers of ids.
func (r *run) numbers(ctx context.Context) v1compat.Numbers {
	return func(keys []idmap.IDKey) (map[idmap.IDKey]int64, error) {
		return known[idmap.IDKey, int64](ctx, r, keys, func(k idmap.IDKey) (idmap.Kind, jsontext.Value) {
			return k.Kind, valueOf(k.String())
		})
	}
}

// ids finds the ids of numbers: unusedID for one of nothing that the key reaches.
func (r *run) ids(ctx context.Context) func([]idmap.NumberKey) (map[idmap.NumberKey]idmap.UUID, error) {
	return func(keys []idmap.NumberKey) (map[idmap.NumberKey]idmap.UUID, error) {
		found, err := known[idmap.NumberKey, idmap.UUID](ctx, r, keys, func(k idmap.NumberKey) (idmap.Kind, jsontext.Value) {
			return k.Kind, valueOf(k.Number)
		})
		for _, key := range keys {
			if _, ok := found[key]; !ok && err == nil {
				found[key] = unusedID
			}
		}
		return found, err
	}
}

// clientOf finds the client of a user.
func (r *run) clientOf(ctx context.Context) func(domain.UserID) (domain.ClientID, error) {
	return func(u domain.UserID) (domain.ClientID, error) {
		if of, ok := r.known.Load(u); ok {
			return of.(domain.ClientID), nil
		}
		a, err := r.service.do(ctx, get("/v2/users/"+u.String()))
		if err != nil {
			return domain.ClientID{}, err
		}
		of, wrong := domain.ParseID[domain.ClientKind](memberOf(a.body, "client_id"))
		if a.status != http.StatusOK || wrong != nil {
			return unusedID, nil
		}
		r.known.Store(u, of)
		return of, nil
	}
}

// known finds what belongs to keys; those that were not asked for before are exchanged.
// asked is a key's kind and its id.
func known[K comparable, V any](
	ctx context.Context, r *run, keys []K, asked func(K) (idmap.Kind, jsontext.Value),
) (map[K]V, error) {
	wanted := map[idmap.Kind][]jsontext.Value{}
	for _, key := range keys {
		if _, ok := r.known.Load(key); !ok {
			kind, id := asked(key)
			wanted[kind] = append(wanted[kind], id)
		}
	}
	for kind, ids := range wanted {
		pairs, err := r.exchange(ctx, kind.String(), ids)
		if err != nil {
			return nil, err
		}
		for _, pair := range pairs {
			number, wrong := strconv.ParseInt(pair.old(), 10, 64)
			if id, err := idmap.ParseID(kind, pair.V2); err == nil && wrong == nil {
				r.known.Store(idmap.IDKey{Kind: kind, ID: id}, number)
				r.known.Store(idmap.NumberKey{Kind: kind, Number: number}, id)
			}
		}
	}
	found := map[K]V{}
	for _, key := range keys {
		if value, ok := r.known.Load(key); ok {
			found[key] = value.(V)
		}
	}
	return found, nil
}

// exchanged is an object in both versions.
type exchanged struct {
	V1 jsontext.Value `json:"v1"`
	V2 string         `json:"v2"`
}

// old is the id of v1 as it stands in paths.
func (e exchanged) old() string { return unquoted(e.V1) }

// exchange asks for ids in both versions.
func (r *run) exchange(ctx context.Context, kind string, ids []jsontext.Value) (all []exchanged, err error) {
	for len(ids) > 0 {
		some := ids[:min(len(ids), exchangeAt)]
		ids = ids[len(some):]
		a, err := r.service.do(ctx, post("/v1/ids/exchange", string(valueOf(map[string]any{"kind": kind, "ids": some}))))
		if err != nil {
			return nil, err
		}
		var out struct {
			Items []exchanged `json:"items"`
		}
		if a.status != http.StatusOK || json.Unmarshal(a.body, &out) != nil {
			r.report.count(exchangeAs, faulty("status", valueOf(a.status), valueOf(http.StatusOK)), a)
			continue
		}
		r.checkHeaders(exchangeAs, a)
		all = append(all, out.Items...)
	}
	return all, nil
}

// otherID is the id in v2 of an object that is known by v1's; empty where there is none.
func (r *run) otherID(ctx context.Context, of Object) string {
	if of.V1 == "" {
		return ""
	}
	pairs, err := r.exchange(ctx, of.Kind, []jsontext.Value{idValue(of.V1)})
	if err != nil || len(pairs) == 0 {
		return ""
	}
	return pairs[0].V2
}

// idValue is an id of either version as JSON: v1's numbers are numbers.
func idValue(id string) jsontext.Value {
	if n, err := strconv.ParseUint(id, 10, 31); err == nil {
		return valueOf(n)
	}
	return valueOf(id)
}

func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}
