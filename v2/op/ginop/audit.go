package ginop

import (
	"cmp"
	"context"
	"net/http"
	"net/netip"
	"reflect"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

type requestKey struct{}

// auditedRequest holds the properties of a request that its audit entry records.
type auditedRequest struct {
	id, method, path string
	address          netip.Addr
}

// withRequest returns the request's context with its auditedRequest.
func withRequest(c *gin.Context) context.Context {
	ctx, r := c.Request.Context(), c.Request
	return context.WithValue(ctx, requestKey{}, auditedRequest{RequestID(c), r.Method, r.URL.Path, domain.AddressFrom(ctx)})
}

// auditWrite is an op.AroundWrite: it runs a request's write and adds its audit entry in one transaction. It runs a
// call outside of a request as it is, without an entry.
func (e *Edge) auditWrite(
	ctx context.Context, o op.Operation, in any, work func(context.Context) (any, error),
) error {
	request, ok := ctx.Value(requestKey{}).(auditedRequest)
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
			Partner: caller.Partner, Key: caller.Key, Prefix: caller.Used(), Address: request.address,
			Operation: cmp.Or(o.Meta().Audited, o.Meta().ID), Method: request.method, Path: request.path, RequestID: request.id,
		}
		entry.Client, entry.User = o.Input().Subject(in)
		entry.Object, entry.Fields = o.Input().Object(in), o.Input().Fields(in)
		setObject(&entry, o, out)
		return e.Audit(ctx, entry)
	})
}

// setObject completes an audit entry from the output. The output's id (idIndex), if any, becomes that of the entry's
// object and, if the object is a client or a user, of the entry's client or user. An entry without a client gets that
// of op.OfClient or of the output's field ClientID.
func setObject(entry *domain.AuditEntry, o op.Operation, out any) {
	if output, ok := out.(op.OfClient); ok && entry.Client.IsZero() {
		entry.Client = output.BudgetClient()
	}
	v := reflect.Indirect(reflect.ValueOf(out))
	if v.Kind() != reflect.Struct {
		return
	}
	if client := v.FieldByName("ClientID"); client.IsValid() && entry.Client.IsZero() {
		entry.Client, _ = client.Interface().(domain.ClientID)
	}
	index := idIndex(v.Type(), o.Meta().Status == http.StatusCreated)
	if index == nil {
		return
	}
	id := v.FieldByIndex(index).Interface()
	if object := op.ObjectOf(id); object != (domain.AuditObject{}) {
		entry.Object = object
	}
	switch id := id.(type) {
	case domain.ClientID:
		entry.Client = id
	case domain.UserID:
		entry.User = id
	}
}

// idIndex returns the index of an output's own field ID. If it has none and created is true, it returns the index of
// the ID within the first struct field that has one. It returns nil if there is neither.
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
