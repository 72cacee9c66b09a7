package parity

import (
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat"
	"partnerapi/v2/api"
)

// exchangeOperation is the exchange of ids in reports.
const exchangeOperation = "POST /v1/ids/exchange"

// unusedNumber and unusedID belong to no object: the registry assigns that number last.
const unusedNumber = "2147483647"

var unusedID = idmap.UUID{6: 0x70, 8: 0x80}

// numbers returns a function that finds the numbers of ids.
func (r *run) numbers(ctx context.Context) v1compat.Numbers {
	return func(keys []idmap.IDKey) (map[idmap.IDKey]int64, error) {
		return resolve[idmap.IDKey, int64](ctx, r, keys, func(k idmap.IDKey) (idmap.Kind, string) {
			return k.Kind, k.String()
		})
	}
}

// ids returns a function that finds the ids of numbers: unusedID if the key has access to no object with the number.
func (r *run) ids(ctx context.Context) func([]idmap.NumberKey) (map[idmap.NumberKey]idmap.UUID, error) {
	return func(keys []idmap.NumberKey) (map[idmap.NumberKey]idmap.UUID, error) {
		found, err := resolve[idmap.NumberKey, idmap.UUID](ctx, r, keys, func(k idmap.NumberKey) (idmap.Kind, string) {
			return k.Kind, strconv.FormatInt(k.Number, 10)
		})
		for _, key := range keys {
			if _, ok := found[key]; !ok && err == nil {
				found[key] = unusedID
			}
		}
		return found, err
	}
}

// clientOf returns a function that finds the client of a user: unusedID if the key has no access to the user.
func (r *run) clientOf(ctx context.Context) func(domain.UserID) (domain.ClientID, error) {
	return func(user domain.UserID) (domain.ClientID, error) {
		if client, ok := r.known.Load(user); ok {
			return client.(domain.ClientID), nil
		}
		a, err := r.service.do(ctx, get("/v2/users/"+user.String()))
		if err != nil {
			return domain.ClientID{}, err
		}
		client, err := domain.ParseID[domain.ClientKind](memberOf(a.body, "client_id"))
		if a.status != http.StatusOK || err != nil {
			return unusedID, nil
		}
		r.known.Store(user, client)
		return client, nil
	}
}

// resolve maps numbers to ids or ids to numbers, and exchanges those not yet known. A key that the exchange does not
// find is omitted. idOf returns a key's kind and its id in either version.
func resolve[K comparable, V any](
	ctx context.Context, r *run, keys []K, idOf func(K) (idmap.Kind, string),
) (map[K]V, error) {
	unknown := map[idmap.Kind][]string{}
	for _, key := range keys {
		if _, ok := r.known.Load(key); !ok {
			kind, id := idOf(key)
			unknown[kind] = append(unknown[kind], id)
		}
	}
	for kind, ids := range unknown {
		objects, err := r.exchange(ctx, kind.String(), ids...)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			number, errNumber := strconv.ParseInt(o.V1, 10, 64)
			if id, err := idmap.ParseID(kind, o.V2); err == nil && errNumber == nil {
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

// exchange returns the objects of a kind that have the ids, which are of either version. A response other than 200 is
// reported as a mismatch, and its ids are omitted.
func (r *run) exchange(ctx context.Context, kind string, ids ...string) (objects []Object, err error) {
	for chunk := range slices.Chunk(ids, api.MaxReachable) {
		values := make([]jsontext.Value, len(chunk))
		for i, id := range chunk {
			values[i] = valueOf(id)
			if n, err := strconv.ParseUint(id, 10, 31); err == nil { // a number of v1
				values[i] = valueOf(n)
			}
		}
		body := valueOf(map[string]any{"kind": kind, "ids": values})
		a, err := r.service.do(ctx, post("/v1/ids/exchange", string(body)))
		if err != nil {
			return nil, err
		}
		var out struct {
			Items []struct {
				V1 jsontext.Value `json:"v1"`
				V2 string         `json:"v2"`
			} `json:"items"`
		}
		if a.status != http.StatusOK || json.Unmarshal(a.body, &out) != nil {
			r.report.add(exchangeOperation, mismatched("status", valueOf(a.status), valueOf(http.StatusOK), a))
			continue
		}
		r.report.add(exchangeOperation, checkHeaders(a))
		for _, item := range out.Items {
			objects = append(objects, Object{Kind: kind, V1: textOf(item.V1), V2: item.V2})
		}
	}
	return objects, nil
}

// withV2 returns the object with v2's id; without if the exchange fails or does not find it. It keeps either result.
func (r *run) withV2(ctx context.Context, o Object) Object {
	if o.V1 == "" {
		return o
	}
	id, known := r.known.Load(o)
	if !known {
		id = ""
		if found, err := r.exchange(ctx, o.Kind, o.V1); err == nil && len(found) > 0 {
			id = found[0].V2
		}
		r.known.Store(o, id)
	}
	o.V2 = id.(string)
	return o
}
