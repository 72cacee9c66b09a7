package ginop

import (
	"context"
	"net/http"
	"net/netip"
	"reflect"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

type requestKey struct{}

// requestOf is what the audit trail records of a request.
type requestOf struct {
	id, method, path string
	address          netip.Addr
}

// withRequest returns a context that carries what the audit trail records of the request.
func withRequest(c *gin.Context) context.Context {
	ctx, r := c.Request.Context(), c.Request
	return context.WithValue(ctx, requestKey{}, requestOf{RequestID(c), r.Method, r.URL.Path, domain.AddressFrom(ctx)})
}

// auditWrite is an op.AroundWrite: it runs a request's write in a transaction that commits together with its audit
// entry. Calls outside a request write no entry.
func (e *Edge) auditWrite(
	ctx context.Context, o op.Operation, in any, work func(context.Context) (any, error),
) error {
	request, ok := ctx.Value(requestKey{}).(requestOf)
	if !ok {
		_, err := work(ctx)
		return err
	}
	return e.InTx(ctx, func(ctx context.Context) error {
		out, err := work(ctx)
		if err != nil {
			return err
		}

		caller := domain.CallerFrom(ctx)
		entry := domain.AuditEntry{
			Partner: caller.Partner, Key: caller.Key, Prefix: caller.Prefix, Address: request.address,
			Operation: o.Meta().ID, Method: request.method, Path: request.path, RequestID: request.id,
		}
		entry.Client, entry.User = o.Input().Subject(in)
		entry.Object, entry.Fields = o.Input().Object(in), o.Input().BodyMembers(in)
		describeObject(&entry, o, out)
		return e.Audit(ctx, entry)
	})
}

// describeObject sets the object, client and user of an audit entry from the output's fields ID and ClientID, or
// from its op.OfClient.
func describeObject(entry *domain.AuditEntry, o op.Operation, out any) {
	if of, ok := out.(op.OfClient); ok && entry.Client.IsZero() {
		entry.Client = of.BudgetClient()
	}
	v := reflect.Indirect(reflect.ValueOf(out))
	if v.Kind() != reflect.Struct {
		return
	}
	if of := v.FieldByName("ClientID"); of.IsValid() && entry.Client.IsZero() {
		entry.Client, _ = of.Interface().(domain.ClientID)
	}
	index := idIndex(v.Type(), o.Meta().Status == http.StatusCreated)
	if index == nil {
		return
	}
	shown := v.FieldByIndex(index).Interface()
	if object := op.ObjectOf(shown); object != (domain.AuditObject{}) {
		entry.Object = object
	}
	switch id := shown.(type) {
	case domain.ClientID:
		entry.Client = id
	case domain.UserID:
		entry.User = id
	}
}

// idIndex returns the index of an output's field ID or, if created is true, of that of the first struct field that has
// one; nil if there is none.
func idIndex(output reflect.Type, created bool) []int {
	if own, ok := output.FieldByName("ID"); ok {
		return own.Index
	}
	for i := range output.NumField() {
		if part := output.Field(i).Type; created && part.Kind() == reflect.Struct {
			if id, ok := part.FieldByName("ID"); ok {
				return append([]int{i}, id.Index...)
			}
		}
	}
	return nil
}
